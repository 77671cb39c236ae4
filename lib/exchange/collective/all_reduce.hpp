// All-reduces over all workers of a group, over shared memory; mpi_reducer.hpp has that between
// hosts. Signs of life, failures and the progress of the workers come from a link of the group.
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/exchange/reducer.hpp>

#include <functional>
#include <memory>
#include <vector>

#include "exchange/shared/peer_waiter.hpp"
#include "exchange/shared/slot_peers.hpp"

namespace fast::exchange {

/// Some of the workers. Does not wait.
using Ended = std::function<std::vector<int>()>;

/// Which workers have ended, as far as this worker knows.
struct ExitReports {
  Ended all;     ///< null: nobody reports deaths; a worker without a sign of life counts as dead
  Ended failed;  ///< those that have failed: by an error that they have reported or announced
};

/// By the launcher, and by what workers announce on the group's latest link.
ExitReports exit_reports(const Group& group);

/// Throws Error(peer_failed) if a worker has failed. It reports the reason itself.
void stop_for_failure(const ExitReports& ends, int rank);

/// Throws if any worker has ended. If one of them has failed, it has told why: Error(peer_failed).
/// A death holds all workers alike, so one of them reports it by Error(deadline): the lowest that
/// lives. The others wait for it, because the process manager ends all ranks when one leaves: until
/// a worker has failed; or until the lowest has died too, then the next one reports. A worker that
/// does not come to report within `patience` counts as dead.
void fail_without(const ExitReports& ends, int rank, Seconds patience = Seconds(10));

/// The link of a reducer: that of a Worker, or one that was opened for reducers.
struct ReducerLink {
  std::shared_ptr<SlotPeers> peers;
  bool is_own = false;  ///< no Worker announces on it that it fails
  ExitReports ends;

  int rank() const { return peers->heartbeat()->rank(); }
  /// On an own link, if an exception is passing.
  void announce_failure() const;
};

/// Over shared memory: each worker reduces one slice of all vectors, then gathers the other slices.
class SlotReducer : public Reducer {
 public:
  static std::size_t part_bytes(std::size_t size_bytes);

  /// `memory` has a part of part_bytes(size_bytes) for each worker, zeroed. If the link's ends are
  /// reported, a worker that is silent is waited for until it is known to have ended; else until it
  /// is a suspect.
  SlotReducer(Region memory, std::size_t size_bytes, ReducerLink link,
              const ExchangeOptions& options);
  ~SlotReducer() override { link_.announce_failure(); }
  SlotReducer(const SlotReducer&) = delete;
  SlotReducer& operator=(const SlotReducer&) = delete;
  void average(std::span<float> values) override { average_of(values); }
  void average(std::span<double> values) override { average_of(values); }

 private:
  template <class T>
  void average_of(std::span<T> values);
  std::atomic<std::int64_t>& phase(int worker) const;
  std::byte* input(int worker) const;
  std::byte* result(int worker) const;
  void arrive(std::int64_t phase);
  void await(int worker, std::int64_t phase);

  Region memory_;
  std::size_t size_bytes_;
  ReducerLink link_;
  int rank_;
  PeerWaiter waiter_;
  std::int64_t calls_ = 0;
};

}  // namespace fast::exchange
