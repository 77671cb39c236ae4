// What happens in a worker, told to whoever wants to know: metrics, traces, displays.
//
//   struct Waits final : fast::Observer {
//     void on_phase(const fast::PhaseEvent& event) noexcept override {
//       if (event.phase == fast::Phase::wait) add(event.peer, event.ended - event.began);
//     }
//   };
//   options.observer = std::make_shared<Waits>();
#pragma once

#include <fast/core/deadline.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast {

/// Where the library's few messages go: a function that the caller hands over. It never prints by
/// itself.
enum class LogLevel { debug, info, warning, error };
/// "debug", "info", "warning" or "error". The text lives as long as the program.
const char* name_of(LogLevel level);
/// Called from the thread that has something to say; must not throw. Empty: silence.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// The parts of a round, in order.
enum class Phase {
  step,     ///< the user's own step, from begin_round() to end_round()
  publish,  ///< writing a publication that no mixing pass could write
  wait,     ///< for neighbors
  mix,      ///< reading the neighbors' publications and averaging
  commit,   ///< telling the neighbors: read, and published
};
std::string_view name(Phase phase);

/// A span of a worker's time. Waits for one peer lie within a wait for the round's neighbors, or
/// within a mix that reads payloads while they arrive.
struct PhaseEvent {
  Phase phase = Phase::step;
  int worker = 0;
  std::int64_t round = 0;
  int peer = -1;  ///< of a wait for one peer; -1: all of the round's neighbors
  Clock::time_point began, ended;
};

/// A worker has published, or has combined a publication.
struct MessageEvent {
  enum class Kind { published, read };
  Kind kind = Kind::published;
  int worker = 0;              ///< that published or read
  int from = 0;                ///< whose publication it is
  std::uint64_t sequence = 0;  ///< number of the publication, from 1 on, by its worker
  std::int64_t round = 0;      ///< of `worker`
  std::int64_t age = 0;        ///< of what was read: rounds behind; at least 0
  bool fresh = true;           ///< not read before
  Clock::time_point at;
  double kept = 1;  ///< of what was read: the share that robust averaging has kept
};

/// A worker takes another for dead or back; or has done something about itself (`peer` is then the
/// worker).
struct PeerEvent {
  enum class Kind {
    suspected,  ///< without a sign of life for WorkerOptions::suspect_after
    returned,   ///< it showed one after all
    rejoined,   ///< the worker was left behind and has adopted its neighbors' average
    healed,     ///< its weights were not finite and have been replaced
  };
  Kind kind = Kind::suspected;
  int worker = 0, peer = 0;
  std::int64_t round = 0;
  Clock::time_point at;
};
std::string_view name(PeerEvent::Kind kind);

/// A number with a name, as users and the Trainer give them: "train/loss".
struct ScalarEvent {
  std::string_view name;  ///< valid during the call
  double value = 0;
  int worker = 0;
  std::int64_t round = 0;
  Clock::time_point at;
};

/// Something that seldom happens: an epoch, a checkpoint. Its figures are scalars.
struct MilestoneEvent {
  enum class Kind {
    epoch_ended,
    saved,  ///< the state was copied for a checkpoint, which a thread then writes
  };
  Kind kind = Kind::epoch_ended;
  std::string_view text;  ///< valid during the call: the checkpoint's round
  int worker = 0;
  int epoch = 0;  ///< from 0 on
  std::int64_t round = 0;
  Clock::time_point began, ended;
};
std::string_view name(MilestoneEvent::Kind kind);

/// The values of a tensor, for histograms. It comes at most once an epoch.
struct ValuesEvent {
  std::string_view name;          ///< valid during the call
  std::span<const float> values;  ///< valid during the call
  int worker = 0;
  int epoch = 0;
  std::int64_t round = 0;
};

/// What a job that is a site (fast/sites/site.hpp) does together with the others. All ranks of the
/// job tell `joined`, and the rank that has the connection tells the rest.
struct SiteEvent {
  enum class Kind {
    joined,     ///< told once, at the end of the first round
    published,  ///< a message, for the other sites
    read,       ///< a message of another site was combined
    forgotten,  ///< another site was silent for so long that nothing more is told of it
  };
  Kind kind = Kind::joined;
  /// `joined` and `published` have this job's own site, the others have the other one.
  std::string site;
  std::uint64_t incarnation = 0;  ///< the process of that site; of a message
  std::int64_t exchange = 0;      ///< the number of the message, from 0 on
  std::int64_t age = 0;           ///< of what was read: the rounds of this site less the other's
  int worker = 0;
  std::int64_t round = 0;  ///< of `worker`
  Clock::time_point at{};
};

/// All that a Worker, a Trainer and user code tell. Functions do nothing unless overridden. They
/// may be called by several threads at once, must not block for long, and do not throw. An observer
/// that cannot go on (disk full) says so once and does nothing from then on.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_phase(const PhaseEvent&) noexcept {}
  virtual void on_message(const MessageEvent&) noexcept {}
  virtual void on_peer(const PeerEvent&) noexcept {}
  virtual void on_site(const SiteEvent&) noexcept {}
  virtual void on_scalar(const ScalarEvent&) noexcept {}
  virtual void on_milestone(const MilestoneEvent&) noexcept {}
  virtual void on_values(const ValuesEvent&) noexcept {}
};

/// One observer that tells several. Null pointers are left out; null when none is left.
std::shared_ptr<Observer> all_of(std::vector<std::shared_ptr<Observer>> observers);

}  // namespace fast
