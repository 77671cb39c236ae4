// What the parts of a worker share.
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/worker/worker.hpp>

#include "combine/mixer.hpp"
#include "membership/members.hpp"
#include "worker/start/startup.hpp"

namespace fast::worker {

/// The round of publications that are no neighbor's message.
inline constexpr std::int64_t no_round = -1;

/// Combination `round` is an exact average over all workers.
inline bool averages_all(const algorithm::RuleTraits& traits, std::int64_t round) {
  return traits.timing.average_every > 0 && (round + 1) % traits.timing.average_every == 0;
}

/// Neighbors read each other for combination `round`.
inline bool reads_neighbors(const algorithm::RuleTraits& traits, std::int64_t round) {
  return traits.topology.scope == algorithm::Scope::neighbors && !averages_all(traits, round);
}

/// What a worker was made with. It does not change.
struct WorkerConfig {
  Group group;
  WorkerOptions options;
  algorithm::RuleTraits traits;
  PayloadShape shape;
  std::shared_ptr<membership::Members> members = nullptr;  ///< null without spares

  bool exact() const { return options.staleness == 0; }
  /// The weights are published before the step, so that neighbors read while gradients are
  /// computed.
  bool before_step() const {
    return traits.timing.publish_point == algorithm::PublishPoint::before_step;
  }
  /// The pass that combines writes the next publication, too.
  bool fused() const { return before_step() && !traits.messages.surveys; }
  bool sends_sums() const { return worker::sends_sums(traits, options); }
  /// The rule's state refers to the mixing weights: with others it begins anew.
  bool remembers_weights() const {
    return traits.memory.remembers_neighbors && traits.topology.needs_static;
  }
  /// Steps from one that combines to the next, which makes mix_times combinations.
  std::int64_t steps() const { return rounds_per_combination(options); }
  /// Those of so many rounds.
  std::int64_t combinations_of(std::int64_t rounds) const {
    return rounds / steps() * options.mix_times;
  }
  /// Of so many combinations, those of a round that is under way left out.
  std::int64_t rounds_of(std::int64_t combinations) const {
    return combinations / options.mix_times * steps();
  }
  /// The worker combines at the end of that round.
  bool combines_in(std::int64_t round) const { return (round + 1) % steps() == 0; }
  /// The worker publishes for the next combination at the end of that round, some steps before.
  bool publishes_early_in(std::int64_t round) const {
    return traits.timing.delay > 0 && (round + 1) % steps() == steps() - traits.timing.delay;
  }
};

/// How far a worker is.
struct Progress {
  WorkerStats stats;
  std::int64_t combinations = 0;
  std::int64_t republished = 0;  ///< combinations that no round has made: see Worker::republish()
  int earlier_growths = 0;       ///< of the run that this one resumes: in the epoch of rules
  double commit_s = 0;
  bool sent = true;              ///< the latest publication was a new message
  bool published_early = false;  ///< for the coming combination, of rules with a delay
  bool settles = false;          ///< the end of this round waits for the device
};

/// References to what all parts of a worker use. The owner outlives the parts.
struct Context {
  const WorkerConfig& setting;
  Progress& progress;
  Exchange& exchange;
  combine::Mixer& mixer;

  const WorkerOptions& options() const { return setting.options; }
  int rank() const { return setting.group.rank(); }
  /// Tells the observer of the latest publication, which was published after `at`.
  void report_published(Clock::time_point at) const {
    if (!options().observer) return;
    options().observer->on_message({MessageEvent::Kind::published, rank(), rank(),
                                    exchange.sequence(), progress.stats.rounds, 0, true, at});
  }
  void report_own_event(PeerEvent::Kind kind) const {
    if (!options().observer) return;
    options().observer->on_peer({kind, rank(), rank(), progress.stats.rounds, Clock::now()});
  }
  void warn(const std::string& text) const {
    if (options().log) options().log(LogLevel::warning, text);
  }
};

// Where a worker's time goes: adds up, and tells the observer.

/// From its construction to its end.
class PhaseTimer {
 public:
  PhaseTimer(const Context& worker, Phase phase, double& total_s)
      : observer_(worker.options().observer.get()),
        total_s_(total_s),
        event_{phase, rank_of(worker), worker.progress.stats.rounds, -1, Clock::now(), {}} {}
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;
  ~PhaseTimer() {
    event_.ended = Clock::now();
    total_s_ += Seconds(event_.ended - event_.began).count();
    if (observer_ != nullptr) observer_->on_phase(event_);
  }

 private:
  /// Asked for where somebody is told.
  static int rank_of(const Context& worker) {
    return worker.options().observer ? worker.rank() : 0;
  }

  Observer* observer_;
  double& total_s_;
  PhaseEvent event_;
};

}  // namespace fast::worker
