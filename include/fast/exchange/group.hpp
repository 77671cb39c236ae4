// The workers of a run, and what they share: the object through which a Worker reaches the others.
#pragma once

#include <fast/exchange/exchange.hpp>
#include <fast/exchange/reducer.hpp>
#include <fast/mpi/communicator.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast {

class RemoteReads;
namespace exchange {
class RemoteAccess;
class SlotBoard;
}  // namespace exchange

/// Memory that all workers of a group can read: one part each.
struct Region {
  std::vector<std::byte*> parts;  ///< by rank; zeroed; aligned to a page
  std::size_t part_bytes = 0;
  std::shared_ptr<void>
      owner;  ///< keeps the memory; releasing it never blocks longer than a deadline
};

/// Short messages to workers of other hosts, beside the exchange: all of one length, in any order,
/// and none is certain to arrive. Used by one thread. Nothing blocks.
class Notes {
 public:
  virtual ~Notes() = default;
  /// False, and nothing is sent, while the last one to that worker is under way, or when it cannot
  /// be reached any more.
  virtual bool send(int worker, std::span<const std::byte> note) = 0;
  /// One that has come, if any.
  virtual bool receive(std::span<std::byte> note) = 0;
};

/// A link of an exchange: payloads and knowledge of peers, over the same memory.
struct Link {
  std::unique_ptr<Exchange> exchange;
  std::shared_ptr<Peers> peers;
};

/// What kinds of group implement: threads of one process, ranks of one host, ranks of many. Calls
/// marked collective are made by every worker of the group in the same order, and end by their
/// deadline with Error(deadline).
class GroupImpl {
 public:
  virtual ~GroupImpl() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;
  /// By rank, the lowest rank of its host; the same on every worker.
  virtual std::vector<int> hosts() const {
    return std::vector<int>(static_cast<std::size_t>(size()));
  }
  /// Collective. Every worker's bytes, by rank. `purpose` is for the error's text.
  virtual std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                              std::string_view purpose) = 0;
  /// Collective. Error(resource), on every worker alike, when there is not enough.
  virtual Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) = 0;
  /// Collective. What keeps the parts of workers of other hosts up to date; null when all are here.
  virtual std::shared_ptr<exchange::RemoteAccess> connect(
      const std::shared_ptr<const exchange::SlotBoard>&, const EdgePlan&, const ExchangeOptions&) {
    return nullptr;
  }
  /// As Group has them.
  virtual std::shared_ptr<RemoteReads> expose(std::byte*, std::size_t, std::shared_ptr<void>,
                                              const Deadline&) {
    return nullptr;
  }
  /// As Group has them.
  virtual std::unique_ptr<Notes> open_notes(std::size_t /*size_bytes*/, const Deadline&) {
    return nullptr;
  }
  virtual bool some_are_gone() const { return false; }
  virtual std::vector<int> died() const { return {}; }
  virtual void give_up() {}
  /// Collective. An all-reduce other than through shared memory; null when that serves.
  virtual std::unique_ptr<Reducer> reducer(const ExchangeOptions&) { return nullptr; }
};

/// The workers of a run, by value (a shared handle).
class Group {
 public:
  explicit Group(std::shared_ptr<GroupImpl> impl) : impl_(std::move(impl)) {}
  /// Collective. The ranks of a communicator: shared windows within a host, remote windows
  /// (MPI_Rget) between hosts.
  Group(const mpi::Communicator& communicator);  // NOLINT: worker(mpi.world(), ...) is the idiom

  int rank() const { return impl_->rank(); }
  int size() const { return impl_->size(); }
  std::string name() const { return impl_->name(); }  ///< "local", "shared", "hybrid"
  /// By rank, the lowest rank of its host (0 for all when they share one), for place() and
  /// graph::hierarchical().
  std::vector<int> hosts() const { return impl_->hosts(); }

  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) const {
    return impl_->all_gather(bytes, deadline, purpose);
  }
  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) const {
    return impl_->allocate(bytes_per_worker, deadline);
  }
  /// Collective. Lets workers of other hosts read `size_bytes` at `part`, which `keep` keeps, by
  /// MPI: memory of whatever kind it knows. Null when there are no other hosts.
  std::shared_ptr<RemoteReads> expose(std::byte* part, std::size_t size_bytes,
                                      std::shared_ptr<void> keep, const Deadline& deadline) const {
    return impl_->expose(part, size_bytes, std::move(keep), deadline);
  }
  /// Collective. Null when there are no other hosts.
  std::unique_ptr<Notes> open_notes(std::size_t size_bytes, const Deadline& deadline) const {
    return impl_->open_notes(size_bytes, deadline);
  }
  /// Whether some worker's process has ended, and whose died or ended badly, as fastrun tells; none
  /// without it. A collective call that waits for a worker that is gone ends with Error(deadline).
  bool some_are_gone() const { return impl_->some_are_gone(); }
  std::vector<int> died() const { return impl_->died(); }
  /// Some workers are gone for good: nothing collective is done any more, at the end neither.
  void give_up() const { impl_->give_up(); }
  /// Collective. Waits until every worker has come.
  void barrier(const Deadline& deadline, std::string_view purpose) const {
    all_gather({}, deadline, purpose);
  }

  /// Collective. Opens an exchange of payloads of that shape.
  Link open(const PayloadShape& shape, EdgePlan plan, const ExchangeOptions& options) const;

  /// Collective. Opens an all-reduce of up to `size_bytes`.
  std::unique_ptr<Reducer> open_reducer(std::size_t size_bytes,
                                        const ExchangeOptions& options) const;

 private:
  std::shared_ptr<GroupImpl> impl_;
};

/// Collective. Runs `part` on every worker; when it throws on any, throws the lowest such worker's
/// error on all of them, marked Error::everywhere() so that it is reported once; what is no
/// fast::Error becomes Error(internal).
void agree(const Group& group, const Deadline& deadline, std::string_view purpose,
           const std::function<void()>& part);

}  // namespace fast
