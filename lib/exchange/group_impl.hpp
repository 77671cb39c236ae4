// What the kinds of group implement: threads of one process, ranks of one host, ranks of several.
#pragma once

#include <fast/exchange/group.hpp>

#include "exchange/device/staged.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "membership/gossip.hpp"

namespace fast {

namespace exchange {
struct ReducerLink;
}
namespace membership {
class Members;
}

namespace exchange {

/// The workers of a group have parts of models, each on several ranks: what one of them, before it
/// goes on alone, has to do with the other ranks of its replica.
class PartOfReplica {
 public:
  virtual ~PartOfReplica() = default;
  /// The worker of this rank has been made, which suspects others after so long, or by itself.
  virtual void set_patience(std::optional<Seconds> suspect_after) = 0;
  /// A call of this rank's worker has failed, which it announces next. False if another rank of any
  /// replica reports a failure. Does not return if a rank of this replica is lost.
  virtual bool note_failure() noexcept = 0;
  /// This rank's worker has taken its neighbors' weights. The others of its replica have taken
  /// none.
  virtual void note_rejoin() = 0;
};

}  // namespace exchange

/// As Group has the functions of the same name.
class GroupImpl {
 public:
  virtual ~GroupImpl() = default;
  // The library's own access to a Group.
  static Group group(std::shared_ptr<GroupImpl> impl) { return Group(std::move(impl)); }
  static GroupImpl& of(const Group& group) { return *group.impl_; }
  static std::shared_ptr<GroupImpl> shared(const Group& group) { return group.impl_; }

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;
  virtual std::vector<int> hosts() const {
    return std::vector<int>(static_cast<std::size_t>(size()));
  }
  /// Collective. The group of the ranks that give the same color.
  virtual std::shared_ptr<GroupImpl> subgroup(int /*color*/, const Deadline&) { return nullptr; }
  /// Null without spares.
  virtual const Group* everyone() const { return nullptr; }
  virtual const Group* founders() const { return nullptr; }
  virtual std::shared_ptr<membership::Members> members() const { return nullptr; }
  /// What this rank allocates from now on may stay unused: the system shall give no pages for it.
  virtual void skip_prefault() {}
  virtual std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                              std::string_view purpose) = 0;
  virtual Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) = 0;
  /// Collective. As allocate(), for a board. In parts of workers of other hosts only the headers
  /// can be accessed, until SlotBoard::provide_mirror has been called.
  virtual Region allocate_board(const exchange::SlotLayout& layout, const Deadline& deadline) {
    return allocate(layout.part_bytes(), deadline);
  }
  /// Collective. Access to workers of other hosts; null if there are none.
  virtual std::shared_ptr<exchange::RemoteAccess> connect(
      const std::shared_ptr<const exchange::SlotBoard>&, const EdgePlan&, const ExchangeOptions&) {
    return nullptr;
  }
  /// Collective. Lets workers of other hosts read `size_bytes` at `part`, which `keep` owns, by
  /// MPI: any kind of memory that MPI supports. Null if there are no other hosts.
  virtual std::shared_ptr<RemoteReads> expose(std::byte* /*part*/, std::size_t /*size_bytes*/,
                                              std::shared_ptr<void> /*keep*/, const Deadline&) {
    return nullptr;
  }
  /// Collective. Null if there are no other hosts.
  virtual std::unique_ptr<membership::Datagrams> open_datagrams(std::size_t /*size_bytes*/,
                                                                const Deadline&) {
    return nullptr;
  }
  /// What workers of this group use in place of `exchange`: a benchmark loses messages there.
  virtual std::unique_ptr<Exchange> over(std::unique_ptr<Exchange> exchange) { return exchange; }
  virtual bool some_are_gone() const { return false; }
  virtual std::vector<int> died() const { return {}; }
  /// Workers that have ended, with success or not; none where nobody reports them.
  virtual std::vector<int> ended() const { return {}; }
  /// Those of them that ended by themselves, with an error.
  virtual std::vector<int> failed() const { return {}; }
  virtual bool knows_ends() const { return false; }
  virtual void disable_collectives() {}
  /// Collective. An all-reduce over MPI; null if all workers share memory.
  virtual std::unique_ptr<Reducer> mpi_reducer(const exchange::ReducerLink&, Seconds /*deadline*/) {
    return nullptr;
  }

  /// Null where each worker has a whole model.
  const std::shared_ptr<exchange::PartOfReplica>& part() const { return part_; }
  void set_part(std::shared_ptr<exchange::PartOfReplica> part) { part_ = std::move(part); }

  /// The latest link of this group; null if nobody uses it any more.
  std::shared_ptr<exchange::SlotPeers> latest_link() const { return link_.lock(); }
  bool link_is_for_reducers() const { return link_is_for_reducers_; }
  void note_link(const std::shared_ptr<exchange::SlotPeers>& link, bool for_reducers) {
    link_ = link;
    link_is_for_reducers_ = for_reducers;
  }

 private:
  std::shared_ptr<exchange::PartOfReplica> part_;
  std::weak_ptr<exchange::SlotPeers> link_;
  bool link_is_for_reducers_ = false;
};

}  // namespace fast
