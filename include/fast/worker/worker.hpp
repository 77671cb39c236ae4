// One worker of a decentralized training job: a line round an existing training step.
//
//   fast::Worker worker(world, fast::stencil::torus2d(), parameters);
//   for (auto& batch : batches) worker.step([&] { model.train(batch); });
#pragma once

#include <fast/algorithm/rules.hpp>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>
#include <fast/core/layout.hpp>
#include <fast/core/log.hpp>
#include <fast/exchange/group.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/schedule.hpp>
#include <fast/worker/stats.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace fast {

class Accelerator;  // made by cuda::accelerator()

template <class T>
class RotatingArena;

/// How the workers' initial weights relate.
enum class Initial {
  broadcast,  ///< all adopt worker 0's
  as_is,      ///< each keeps its own
};

/// What happens when a worker's loss or weights are not finite. They are not published either way.
enum class NotFinite {
  abort,  ///< losses are looked at: Error(numeric), which ends the run
  heal,   ///< weights, too: the worker takes its last publication or its neighbors' average instead
};

struct WorkerOptions {
  algorithm::Rule algorithm = algorithm::awc();
  /// Of the device that the tensors are on (all of them); null: they are in host memory. Workers
  /// with and without one fit each other. What a device does not do (algorithms that are not
  /// elementwise, most codecs) is refused by name.
  std::shared_ptr<Accelerator> accelerator;
  WeightRule weights = WeightRule::automatic;
  bool lazy_weights = false;  ///< (I+W)/2
  /// Oldest neighbor's round that may be combined in round t is t - staleness. 0: exactly the same
  /// round, reproducible; unbounded_staleness: never wait.
  std::int64_t staleness = 0;
  /// What messages look like: bf16 halves memory traffic and bytes sent. The workers' mean is kept
  /// as without, and weights agree to the codec's precision.
  codec::Options codec;
  std::int64_t mix_every = 1;  ///< combine in every k-th step only
  Initial initial = Initial::broadcast;
  Seconds deadline{300};     ///< for start-up, and for a wait without progress of any worker; on a
                             ///< device waits begin with the step that they are beside
  Seconds suspect_after{5};  ///< a peer without a sign of life for so long is left out
  RemotePathChoice remote_path = RemotePathChoice::measured;  ///< how other hosts are reached
  double remote_bytes_per_s = 0;  ///< this worker's cap on payloads to other hosts; 0: none
  /// A worker that was stopped for longer than suspect_after and is further behind its neighbors
  /// than so many rounds adopts their average, and round() goes on from theirs. At staleness 0 it
  /// does when the others' rounds of that time are gone.
  std::int64_t rejoin_after = 10;
  NotFinite not_finite = NotFinite::abort;
  std::function<void()> on_healed;  ///< the optimizer's state may not be finite either
  /// Which tensors take part; null: all. Frozen layers or adapters are left out with it.
  std::function<bool(const TensorView&)> participates;
  std::function<void(std::int64_t round)> on_round;  ///< after each round, on the worker's thread
  std::function<void(int peer)> on_suspect;          ///< a peer was left out of a round
  LogSink log;
  /// More text that must be equal on all workers ("lr=0.05"), one setting a line.
  std::string must_agree;
};

/// Why workers with such options cannot have their tensors on a device, in one line; empty when
/// they can.
std::string why_not_on_device(const WorkerOptions& options);

struct StepOptions {
  double learning_rate = 0;  ///< of this step, for the rules that need it
};

/// Owned and called by one thread; several Workers may live in one process. The tensors' memory
/// stays the caller's and must stay in place (or see rebind()).
///
/// Errors: Error(mismatch) at construction, on every worker, when models or options differ;
/// Error(deadline) from any call that waits; Error(peer_failed) when a peer has failed;
/// Error(numeric) when a step returns a loss that is not finite, whose weights are then not
/// published (but see WorkerOptions::not_finite).
class Worker {
 public:
  /// Collective over the group. `rule` says who reads whom for any number of workers.
  Worker(Group group, const TopologyRule& rule, std::vector<TensorView> parameters,
         WorkerOptions options = {});
  /// The same over the ranks of a communicator.
  Worker(const mpi::Communicator& communicator, const TopologyRule& rule,
         std::vector<TensorView> parameters, WorkerOptions options = {})
      : Worker(Group(communicator), rule, std::move(parameters), std::move(options)) {}
  Worker(Worker&&) noexcept;
  /// Leaves as finished, or as failed when an exception is passing. Does not throw, and waits a few
  /// seconds for the others at most.
  ~Worker();

  /// A round: runs `train`, the user's own forward, backward and optimizer step, while neighbors'
  /// weights arrive, then combines. Returns what `train` returns; a floating-point result is taken
  /// for the loss and must be finite.
  template <class Train>
  auto step(Train&& train, const StepOptions& options = {}) {
    return round_of(train, [&] { end_round(options); });
  }

  /// The same in two halves, around the user's step.
  void begin_round();
  void end_round(const StepOptions& options = {});
  /// The same; the step's loss must be finite.
  void end_round(double loss, const StepOptions& options = {});

  std::int64_t round() const;  ///< rounds finished
  int rank() const;
  int size() const;
  WorkerStats stats() const;
  const Schedule& schedule() const;
  const ParameterLayout& layout() const;
  const algorithm::Declaration& algorithm() const;

  /// The average of all workers' newest publications, packed (see ParameterLayout) or into tensors
  /// of the same layout, on the host or on this worker's device. Not collective: exact after
  /// await_finish(), else as recent and as precise as what has been published (see
  /// WorkerOptions::codec). When deaths have cut the topology, it is then the average of this
  /// worker's part (see living_parts()): the others are another model.
  void mean_model(std::span<std::byte> packed) const;
  void mean_model(const std::vector<TensorView>& out) const;
  /// sqrt(mean_i ‖x_i - x̄‖²) over the same publications' parameters.
  double consensus_distance() const;

  /// Publishes the weights as they stand now (after loading some by hand). At staleness 0 every
  /// worker calls it between the same rounds, and a schedule moves on by one.
  void republish();
  /// The framework has moved its memory: same tensors, new places. Throws Error(mismatch) when they
  /// differ.
  void rebind(std::vector<TensorView> parameters);
  /// Another schedule from the next round on; every worker calls it between the same rounds.
  void set_schedule(const TopologyRule& rule);

  /// What this worker carries from round to round besides the tensors' own memory: counters, the
  /// rule's state, error feedback, the message in force. Views for checkpoints, between rounds,
  /// valid until the next one.
  std::vector<TensorView> state();
  /// Collective, before the first round: goes on where a worker stood whose state() was `saved`;
  /// the tensors hold its weights already. At staleness 0, with the same options and as many
  /// workers, the rounds to come are those that would have been, bit for bit; else the rule begins
  /// anew, at the saved round. Throws Error(mismatch) when the state is not of such a worker.
  void restore(const std::vector<TensorView>& saved);

  /// Publishes the final weights and leaves training: neighbors go on without this worker.
  /// Idempotent.
  void finish();
  /// Blocks until every worker has finished (or is a suspect); then mean_model() is exact and equal
  /// everywhere.
  void await_finish();
  /// Workers of which there has been no sign of life for WorkerOptions::suspect_after, though they
  /// had not finished: this host's while training goes on, all after await_finish(); then
  /// mean_model() and consensus_distance() are those of this worker's part of the others.
  const std::vector<int>& lost() const;
  /// Whether that worker has left training as finished. Does not wait.
  bool has_finished(int worker) const;
  /// Tells the others that this worker failed. True when it is the first: the one that reports.
  /// Does not throw.
  bool abandon() noexcept;

 private:
  template <class T>
  friend class RotatingArena;

  /// A round of that work, ended by `end`; returns what `work` does.
  template <class Work, class End>
  auto round_of(Work&& work, const End& end) {
    begin_round();
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
        work();
        end();
      } else {
        auto result = work();
        if constexpr (std::is_floating_point_v<decltype(result)>) {
          check_loss(static_cast<double>(result));
        }
        end();
        return result;
      }
    } catch (...) {
      rethrow_as_failed();
    }
  }
  void check_loss(double loss);
  /// Announces the failure and rethrows the current exception; as Error(peer_failed), which nobody
  /// reports, when another worker was first.
  [[noreturn]] void rethrow_as_failed();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast
