// One worker of a decentralized training job: a line round an existing training step.
//
//   fast::Worker worker(world, fast::stencil::torus2d(), parameters);
//   for (auto& batch : batches) worker.step([&] { model.train(batch); });
#pragma once

#include <fast/algorithm/rules.hpp>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>
#include <fast/core/observer.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/exchange/group.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/membership/growth_rounds.hpp>
#include <fast/mixing/robust.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/topology.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fast {

/// What robust averaging has kept of a neighbor's publications.
struct NeighborShare {
  int worker = 0;            ///< the neighbor
  std::int64_t reads = 0;    ///< of its publications
  std::int64_t clipped = 0;  ///< of these, not kept as a whole
  double kept = 0;           ///< the mean share that was kept, over `reads`
};

/// What a worker has done and where its time went.
struct WorkerStats {
  std::int64_t rounds = 0;
  double step_s = 0;             ///< in the user's own step (between begin_round and end_round)
  double wait_s = 0;             ///< waiting for neighbors
  double publish_s = 0;          ///< writing publications that no mixing pass could write
  double mix_s = 0;              ///< in the averaging pass
  std::int64_t reads = 0;        ///< neighbors' publications combined
  std::int64_t fresh_reads = 0;  ///< of these, not combined before
  /// Reads repeated because a neighbor's slot changed meanwhile: of blocks of the model in
  /// rules that only average, else of the whole model.
  std::int64_t rejected = 0;
  std::int64_t skipped = 0;  ///< neighbors left out of a round: torn thrice, suspect or finished
  /// Combined publications by age: how many rounds behind one's own; negative ages count as 0, the
  /// last bin takes the rest. Of several publications of a neighbor in a round, the oldest counts.
  std::array<std::int64_t, 16> ages{};
  std::int64_t rejoined = 0;  ///< times that the worker caught up by adopting neighbors' weights
  /// Of a spare that has taken a seat: the rounds that count as made when it began, and those that
  /// the worker before it is known to have made. `joined_at` also of a site that has joined others.
  /// 0 for all other workers.
  std::int64_t joined_at = 0, predecessor_rounds = 0;
  std::int64_t healed = 0;         ///< rounds whose step left a loss or weights that are not finite
  std::int64_t messages_sent = 0;  ///< publications × readers, over all rounds
  std::int64_t messages_held = 0;  ///< left out as the rule kept the last one in force
  double bytes_sent = 0;           ///< payload bytes, as coded, × readers, over all rounds
  /// Bytes of other workers' models that this worker has read for mean models and distances, and to
  /// adopt weights.
  double model_bytes_read = 0;
  /// Memory of the device that the worker's accelerator holds: messages and the rule's state, and
  /// not the tensors; 0 on the host.
  double device_bytes = 0;
  /// Bound on how far dropped neighbors have moved the mean: Σ over rounds of the column weights
  /// lost.
  double mean_drift_weight = 0;
  /// The mixing weights are (I+W)/2: by WorkerOptions::lazy_weights, or because the algorithm needs
  /// larger eigenvalues than those of W. Averages then take about twice as many rounds.
  bool lazy_weights = false;
  std::vector<NeighborShare> shares{};  ///< with WorkerOptions::robust, by worker
};

class Accelerator;   // made by cuda::accelerator()
class SiteExchange;  // made by sites::join()

template <class T>
class RotatingArena;

/// How the workers' initial weights relate.
enum class Initial {
  broadcast,  ///< all adopt worker 0's
  as_is,      ///< each keeps its own; diloco with changes=true: these must be equal
};

/// One worker's weights in a mean model.
struct MeanPart {
  int worker = 0;
  /// So many of that worker's own steps are in its weights: at staleness 0 exactly, but for those
  /// after the last average (mix_every). Above it, weights of the start and of the end count one
  /// period too many.
  std::int64_t steps = 0;
};

/// A function of the mean model, such as its suboptimality, while workers train on.
struct MeanWatch {
  std::int64_t every = 1;  ///< after each so many rounds
  int worker = 0;          ///< on this one alone
  /// Gets the rounds that this worker has made, and what mean_model() gives: the mean, packed, of
  /// each worker's newest publication, whose steps `parts` tells. Nobody waits. Where all steps are
  /// t, and W is doubly stochastic, it is the mean after round t (x̄_t). At staleness 0 a worker's
  /// steps are at most its distance in the topology from `round`. Called on the worker's thread
  /// before on_round. Empty: there is none.
  std::function<void(std::int64_t round, std::span<const std::byte> mean,
                     std::span<const MeanPart> parts)>
      call;
};

/// What happens when a worker's loss or weights are not finite. They are not published either way.
enum class NotFinite {
  abort,  ///< Error(numeric), which ends the run
  heal,   ///< the worker takes its last publication or its neighbors' average instead
};

/// The largest WorkerOptions::mixing_threads.
inline constexpr int most_mixing_threads = 256;

struct WorkerOptions {
  algorithm::Rule algorithm = algorithm::awc();
  /// Of the device that the tensors are on (all of them); null: they are in host memory. Workers
  /// with and without one fit each other. What a device does not do (algorithms that are not
  /// elementwise, codecs of 8 bits and less for 16-bit weights) is refused by name.
  std::shared_ptr<Accelerator> accelerator;
  /// Joins this job to jobs at other places. For one worker whose tensors are in host memory; null:
  /// there are no other sites. The constructor then blocks until the site takes part.
  std::shared_ptr<SiteExchange> site;
  WeightRule weights = WeightRule::automatic;
  bool lazy_weights = false;  ///< (I+W)/2
  /// Oldest neighbor's round that may be combined in round t is t - staleness. 0: exactly the same
  /// round, reproducible; unbounded_staleness: never wait.
  std::int64_t staleness = 0;
  /// What messages look like: bf16 halves memory traffic and bytes sent. The workers' mean is kept
  /// as without, and weights agree to the codec's precision.
  codec::Options codec;
  std::int64_t mix_every = 1;  ///< combine in every k-th step only
  /// So many averages in such a step (multi-step gossip): atc makes W^k (x + δ) of x, awc
  /// W^(k-1) (W x + δ). A schedule moves on by k rounds; each average sends messages, and messages
  /// are coded each time. For rules that keep nothing between averages (awc, atc, local, pairwise),
  /// at staleness 0; others are refused. Rounds count steps, as ever.
  std::int64_t mix_times = 1;
  /// So many threads average weights in host memory, the calling one among them: 1 to
  /// most_mixing_threads. They need as many cores. The bits are the same with any number. All of
  /// them call a PartUpdate. One thread averages models of up to 65,536 parameters, by rules that
  /// devices do not know, by running sums, in sparse messages, by trimmed means, and while messages
  /// arrive. So many threads also read long models of this host for mean models and distances.
  int mixing_threads = 1;
  Initial initial = Initial::broadcast;
  Seconds deadline{300};  ///< for start-up, and for a wait without progress of any worker; on a
                          ///< device waits begin with the step that they are beside
  /// A peer without a sign of life for so long is left out. None: automatic, from the measured gaps
  /// between each peer's signs of life. It is 5 s for the first 5 s of training, then four times
  /// the usual longest gap, at least 1 s and at most 10 s. Links with longer gaps than that need
  /// seconds.
  std::optional<Seconds> suspect_after;
  RemotePathChoice remote_path = RemotePathChoice::measured;  ///< how other hosts are reached
  double remote_bytes_per_s = 0;  ///< this worker's cap on payloads to other hosts; 0: none
  /// A worker that was stopped for longer than suspect_after and is further behind its neighbors
  /// than so many combinations (one every mix_every rounds, or every period of the rule) adopts
  /// their average, and round() goes on from theirs. At staleness 0 it does when the others' rounds
  /// of that time are gone.
  std::int64_t rejoin_after = 10;
  NotFinite not_finite = NotFinite::abort;
  /// Limits what single bad neighbors do to this worker's weights. For rules that add the pull of
  /// their neighbors' weights and remember nothing (awc, atc, local), over host memory; others are
  /// refused. Initial weights, mean models, and the average that a worker adopts which comes back
  /// are not robust.
  Robust robust = Robust::none;
  std::function<void()> on_healed;  ///< the optimizer's state may not be finite either
  /// Which tensors take part in rounds; null: all. Integers never do. Tensors that do not take part
  /// are neither averaged nor sent. If they differ among the workers at the start, worker 0 logs
  /// one warning that names them, unless they are in `frozen`.
  std::function<bool(const TensorView&)> participates;
  /// Tensors that nobody trains, such as frozen layers. They take no part in rounds; they may be
  /// among the parameters that `participates` leaves out, or not be parameters at all. At the start
  /// the workers compare hashes of their bytes. If some differ, all workers get worker 0's with
  /// Initial::broadcast, and Error(mismatch) names them with Initial::as_is. All workers list the
  /// same names, shapes and types, in the same order. Any element type; contiguous memory of the
  /// host or of the accelerator's device. The constructor alone reads and writes them.
  std::vector<TensorView> frozen;
  MeanWatch on_mean;
  std::function<void(std::int64_t round)> on_round;  ///< after each round, on the worker's thread
  std::function<void(int peer)> on_suspect;          ///< a peer was left out of a round
  LogSink log;
  std::shared_ptr<Observer> observer;  ///< of rounds, messages and peers; null: none, for free
  /// More text that must be equal on all workers ("lr=0.05"), one setting a line.
  std::string must_agree;
};

/// Why workers with such options cannot have these tensors on a device, in one line; empty when
/// they can.
std::string why_not_on_device(const WorkerOptions& options,
                              std::span<const TensorView> tensors = {});

/// Workers that take no part in training any more, by rank, sorted.
struct Departures {
  std::vector<int> finished;  ///< of those that were asked about
  /// Those without a sign of life for WorkerOptions::suspect_after that had not finished. While
  /// training goes on: of this host. After await_finish(): of all hosts; then mean_model() and
  /// consensus_distance() are those of this worker's part of the others.
  std::vector<int> lost;
  /// Those that have left by Worker::leave(), of the same workers as `lost`. mean_model() and
  /// consensus_distance() leave them out.
  std::vector<int> left;
};

struct StepOptions {
  double learning_rate = 0;  ///< of this step, for the rules that need it
  /// Of the run's steps so far, where this worker has not made all of them (a spare, a resumed
  /// run); 0: the largest of its own.
  double largest_rate = 0;
  /// With WorkerOptions::accelerator: the queue, for CUDA a cudaStream_t, that the step has
  /// enqueued its work in. end_round() then does not wait for the device: its work on the tensors
  /// follows what the queue has, and what is enqueued there later follows it. None: the step's work
  /// is done when end_round() is called, and the tensors may be used when that returns.
  std::optional<void*> queue{};
};

namespace worker {

/// Rethrows the current exception; as Error(peer_failed), which nobody reports, unless this worker
/// is the `first` that failed.
[[noreturn]] void rethrow_as_failed(bool first);

/// A round of `work`. `end` gets what `work` returns if that is a floating-point number: the loss;
/// else nothing. Announces a failure to the other workers. Returns what `work` returns.
template <class AnyWorker, class Work, class End>
auto run_round(AnyWorker& worker, Work&& work, const End& end) {
  worker.begin_round();
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      work();
      end();
    } else {
      auto result = work();
      if constexpr (std::is_floating_point_v<decltype(result)>) {
        end(static_cast<double>(result));
      } else {
        end();
      }
      return result;
    }
  } catch (...) {
    rethrow_as_failed(worker.abandon());
  }
}

}  // namespace worker

/// Owned and called by one thread; several Workers may live in one process. The tensors' memory
/// stays the caller's and must stay in place (or see rebind()).
///
/// Errors: Error(mismatch) at construction, on every worker, when models or options differ;
/// Error(deadline) from any call that waits; Error(peer_failed) when a peer has failed;
/// Error(numeric) when a step returns a loss that is not finite, or when the weights or the rule's
/// message are not, before anything of them is published (but see WorkerOptions::not_finite). On a
/// device the loss alone is looked at. A WaitCheck of the thread can end any call that waits.
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
    return worker::run_round(*this, train,
                             [&](const auto&... loss) { end_round(loss..., options); });
  }

  /// The same in two halves, around the user's step.
  void begin_round();
  void end_round(const StepOptions& options = {});
  /// Ends a round as above; the step's loss must be finite.
  void end_round(double loss, const StepOptions& options = {});

  /// Rounds finished. The largest number, so that loops over rounds end, in a spare that was not
  /// needed, in a worker that a spare has replaced (see Group::has_seat()) and after leave(). There
  /// step() only runs the user's step.
  std::int64_t round() const;
  int rank() const;  ///< the seat (see with_spares()): this worker's number in the topology
  int size() const;  ///< workers; spares do not count until they join
  WorkerStats stats() const;
  const ParameterLayout& layout() const;

  /// The average of all workers' newest publications, packed (see ParameterLayout) or into tensors
  /// of the same layout, on the host or on this worker's device. Not collective: exact after
  /// await_finish(), else as recent and as precise as what has been published (see
  /// WorkerOptions::codec). When deaths have cut the topology, it is then the average of this
  /// worker's part (see living_parts()): the others are another model. Returns whose weights it is
  /// made of.
  std::vector<MeanPart> mean_model(std::span<std::byte> packed) const;
  std::vector<MeanPart> mean_model(const std::vector<TensorView>& out) const;
  /// sqrt(mean_i ‖x_i - x̄‖²) over the same publications' parameters.
  double consensus_distance() const;
  /// Both together after await_finish(), with less traffic: the mean model goes into `packed`, the
  /// distance is returned. Every worker of this worker's part calls it, once. Each reads a part of
  /// all replicas, averages it, and reads the others' parts of the mean: together they read at most
  /// 2·N·P bytes of each other for N replicas of P bytes. Blocks until the others' parts are there.
  /// The mean is the same on all workers. A worker that dies meanwhile holds nobody: another one
  /// computes its part. If it was on another host, its weights count in the parts that were read
  /// before, and its part may differ between the others. Throws Error(deadline). Reads as
  /// mean_model() does if the model has less than 4 KiB, or if a codec replaces the weights. With
  /// an empty `packed`, the distance alone; a second call may then ask for the mean.
  double reduce_models(std::span<std::byte> packed);
  /// Gives the system the memory of all publications in host memory but the last one, which the
  /// others still read. Call it after await_finish().
  void trim();

  /// Publishes the weights as they stand now (after loading some by hand). At staleness 0 every
  /// worker calls it between the same rounds, and a schedule moves on by one.
  void republish();
  /// The framework has moved its memory: same tensors, new places. Throws Error(mismatch) when they
  /// differ.
  void rebind(std::vector<TensorView> parameters);
  /// Another schedule from the next round on; every worker calls it between the same rounds. Rules
  /// that need a topology that stays, and remember their neighbors, begin their memory anew. Throws
  /// Error(argument) over a group with spares, which do not learn of the change.
  void set_schedule(const TopologyRule& rule);

  /// From now on a spare may join as one worker more when the launcher asks for it (see
  /// with_spares()). Every worker calls it, with the same `rounds` as counted by round(). The
  /// workers agree on a round; before this round, on return from step() or end_round(), size() is
  /// one larger, and each worker follows the topology for that number. Programs divide their data
  /// by size() in every round, or anew when it has changed. If GrowthRounds::every is above 1, each
  /// further change needs another call, after the last one has happened. Without spares it does
  /// nothing. Rules that send running sums at a staleness above 0 do not grow.
  void allow_growth(const GrowthRounds& rounds = {});

  /// What this worker carries from round to round besides the tensors' own memory: counters, the
  /// rule's state, error feedback, remainders of 16-bit weights, the message in force. Views for
  /// checkpoints, between rounds, valid until the next one.
  std::vector<TensorView> state();
  /// Collective, before the first round: goes on where a worker stood whose state() was `saved`;
  /// the tensors hold its weights already. At staleness 0, with the same options and as many
  /// workers, the rounds to come are those that would have been, bit for bit; else the rule begins
  /// anew, at the saved round. So do, of another topology or other weights, rules whose state
  /// refers to them, and all rules if `saved` has the counters alone, which are the first view.
  /// Throws Error(mismatch) when the state is not of such a worker.
  void restore(const std::vector<TensorView>& saved);

  /// Publishes the final weights and leaves training: neighbors go on without this worker.
  /// Idempotent.
  void finish();
  /// Leaves training before its end, between rounds; the others go on. Neighbors read what was
  /// published for the coming round, and then leave this worker out as a lost one, but without
  /// waiting: they keep its mixing weight, and rules that remember neighbors begin anew (push_sum:
  /// with a mass of 1 for each that stays). Its weights do not count in the mean model any more.
  /// Afterwards round() is the largest number, and step() only runs the user's step. The caller
  /// ends its process by Group::disable_collectives(). Throws Error(argument) if the algorithm
  /// averages over all workers.
  void leave();
  /// Blocks until every worker has finished (or is a suspect); then mean_model() is exact and equal
  /// everywhere.
  void await_finish();
  /// The workers that have left training. Does not wait, but for looking at workers of `ask` on
  /// other hosts. None in a spare that was not needed.
  Departures departed(const std::vector<int>& ask = {}) const;
  /// Tells the others that this worker failed. True when it is the first: the one that reports.
  /// Does not throw.
  bool abandon() noexcept;

 private:
  template <class T>
  friend class RotatingArena;

  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::optional<Group> unneeded_;  ///< of a spare that was not needed
};

// Adapters use it whose frameworks keep their tensors elsewhere than in the worker's views.

/// One round, as Worker::step(train, options), whose result it returns; `bring` puts trained values
/// into the worker's views before they are published, `take` averaged ones back afterwards.
template <class Train, class Bring, class Take>
auto step_around(Worker& worker, Train&& train, Bring&& bring, Take&& take,
                 const StepOptions& options = {}) {
  if constexpr (std::is_void_v<std::invoke_result_t<Train>>) {
    worker.step(
        [&] {
          train();
          bring();
        },
        options);
    take();
  } else {
    auto result = worker.step(
        [&] {
          auto value = train();
          bring();
          return value;
        },
        options);
    take();
    return result;
  }
}

}  // namespace fast
