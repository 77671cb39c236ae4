// Replicas of several ranks, each of which has a part of the model.
//
//   const fast::Replicas replicas(world, 2);           // ranks 0 and 1, 2 and 3, ...
//   fast::mpi::PointToPoint messages(replicas.inside(), deadline);
//   fast::Worker worker = replicas.make_worker(fast::stencil::ring(), part);
//   for (auto& batch : batches) worker.step([&] { train(part, batch, messages); });
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/mpi/communicator.hpp>
#include <fast/worker/worker.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fast {

/// The ranks of a communicator, divided into replicas of equally many consecutive ranks. Each rank
/// has a part of its replica's model, its *shard*. It averages this part with the ranks that have
/// the same part in other replicas. Inside a replica, the program itself sends what the parts need
/// of each other.
///
/// A rank that is lost ends its replica, if fastrun has started the ranks. The other ranks of the
/// replica end their processes by themselves, from a thread of this object: within 2 s, with status
/// 137, and without destructors. fastrun counts them as lost, too. One of them says why on standard
/// error. The other replicas go on without this one, as after the death of a single worker. The
/// same happens under fastrun to a replica of which a rank has given no sign of life for
/// WorkerOptions::suspect_after (10 s by default), and to one that was stopped and whose Worker has
/// caught up by its neighbors' weights.
///
/// An exception ends all ranks of all replicas, and one of them reports it. A rank notes it when
/// its Worker fails, or when this object ends while the exception passes. Calls of the library that
/// wait on the thread of this object then throw Error(peer_failed) on the other ranks. A rank whose
/// thread calls nothing of the library ends its process after a second, or up to ten seconds later
/// if it waits for the others to leave, with status 1.
///
/// One thread owns and uses an object, which lives longer than the Workers of its ranks. Before the
/// end of a program, a replica calls inside().barrier(), if its ranks still need each other.
class Replicas {
 public:
  /// Collective over `ranks`, which have no spares. Keeps a handle of the communicator. Throws
  /// Error(argument) on every rank if the number of ranks is no multiple of `shards`, if `shards`
  /// is below 1, or differs among the ranks. Throws Error(deadline) if a rank does not come.
  Replicas(const mpi::Communicator& ranks, int shards, Seconds deadline = Seconds(300));
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;
  /// Does not block, except while an exception passes: it then finds out within about 2 s whether
  /// that follows from the end of another rank.
  ~Replicas();

  int index() const;   ///< the number of this rank's replica, which is Worker::rank()
  int count() const;   ///< of the replicas
  int shard() const;   ///< the number of this rank in its replica
  int shards() const;  ///< ranks of a replica

  /// The ranks of this replica, by shard. The program may make collective calls on it.
  const mpi::Communicator& inside() const;
  /// The ranks that have this shard, by replica. A Worker of this group refuses what needs the
  /// whole model with Error(argument): the rule event_triggered, NotFinite::heal, robust averages
  /// and sites.
  const Group& across() const;

  /// Collective over all ranks. Makes the Worker that averages this rank's part. The ranks of a
  /// shard have the same tensors and options; other shards may have other ones. What Worker's
  /// constructor throws on any rank, all ranks throw, and one reports it.
  Worker make_worker(const TopologyRule& rule, std::vector<TensorView> part,
                     WorkerOptions options = {}) const;

  /// Collective within the replica. Returns the numbers that any of its ranks gives, each once, in
  /// ascending order. Ranks of a replica may have heard of different workers that are gone (see
  /// Worker::departed()): they agree by this on those that they count. Throws Error(deadline).
  std::vector<int> agree_on(const std::vector<int>& numbers) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast
