// The workers of a run and what they share. A Worker reaches the others through a Group.
#pragma once

#include <fast/core/error.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/exchange/reducer.hpp>
#include <fast/mpi/communicator.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fast {

class GroupImpl;

/// Memory that all workers of a group can read: one part each.
struct Region {
  std::vector<std::byte*> parts;  ///< by rank; zeroed; aligned to a page
  std::size_t part_bytes = 0;
  /// Owns the memory. Its release does not block. See mpi::SharedWindow.
  std::shared_ptr<void> owner;
};

class Peers;  // what workers know of each other besides payloads

/// An exchange and the states of its workers, over the same memory.
struct Link {
  std::unique_ptr<Exchange> exchange;
  std::shared_ptr<Peers> peers;
};

/// The workers of a run, by value (a shared handle). A call marked collective is made by every
/// worker of the group, in the same order. It ends by its deadline with Error(deadline).
class Group {
 public:
  /// Collective. The ranks of a communicator: shared windows within a host; reads (MPI_Rget) and
  /// messages between hosts.
  explicit Group(const mpi::Communicator& communicator);

  int rank() const;          ///< with spares, the seat: see with_spares()
  int size() const;          ///< workers; spares do not count until they join
  std::string name() const;  ///< "local", "shared", "hybrid"
  /// The lowest rank of the host of each rank (0 for all when they share one), for place() and
  /// graph::hierarchical().
  std::vector<int> hosts() const;

  /// Spares that were started with the workers and have not joined; see with_spares().
  int spares() const;
  /// All ranks, spares among them, by their numbers. It is this group if there are no spares.
  Group everyone() const;
  /// The workers that began on the seats, without spares. It is this group if there are no spares.
  Group founders() const;
  /// False for a spare that has no seat yet, and for a worker whose seat a spare has taken.
  bool has_seat() const;
  /// Workers that a spare has replaced. No call is collective any more if there is one.
  std::vector<int> replaced() const;
  /// Workers that have joined since training began; see Worker::allow_growth(). No call is
  /// collective any more if there is one.
  std::vector<int> joined() const;

  /// Collective. The bytes of every worker, by rank. `purpose` is for the error's text.
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) const;
  /// Collective. Waits for every worker.
  void barrier(const Deadline& deadline, std::string_view purpose) const;
  /// Collective. If there is not enough memory on some host, throws Error(resource) on worker 0,
  /// and Error(peer_failed) on the others.
  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) const;

  /// Whether some worker's process has ended; and the workers that died or ended with an error.
  /// fastrun reports both: without it the answers are false and none. A collective call that waits
  /// for a worker that is gone ends with Error(deadline).
  bool some_are_gone() const;
  std::vector<int> died() const;
  /// Call it if workers are gone for good: no collective call is made any more, nor at the end.
  void disable_collectives() const;

  /// Collective. Opens an exchange of payloads of that shape.
  Link open(const PayloadShape& shape, EdgePlan plan, const ExchangeOptions& options) const;
  /// Collective. Opens an all-reduce of up to `size_bytes`.
  std::unique_ptr<Reducer> open_reducer(std::size_t size_bytes,
                                        const ExchangeOptions& options) const;

 private:
  friend class GroupImpl;
  explicit Group(std::shared_ptr<GroupImpl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<GroupImpl> impl_;
};

/// Whether a worker is lost, where a collective call has ended with that error: one survivor of a
/// death gets Error(deadline), the others Error(peer_failed). Waits a moment for the launcher's
/// news of the death. False for other errors, for a failure that its worker reports, and without
/// fastrun.
bool is_of_a_loss(const Group& group, const Error& error);

/// Collective. Runs `part` on every worker. If it throws on any, throws the error of the lowest
/// such worker on all of them, marked Error::everywhere() so that one worker reports it. An
/// exception other than fast::Error becomes Error(internal).
void agree(const Group& group, const Deadline& deadline, std::string_view purpose,
           const std::function<void()>& part);

}  // namespace fast
