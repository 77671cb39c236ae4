// Reads the slots of other workers, and mirrors of slots of other hosts.
#pragma once

#include <memory>
#include <vector>

#include "exchange/shared/peer_waiter.hpp"
#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// At staleness 0 finds exactly the publication of a round; above 0 the newest one that is recent
/// enough. Payloads are read in place; is_intact() says afterwards whether that worked.
class SlotReader {
 public:
  /// `waiter` must outlive this object.
  SlotReader(std::shared_ptr<const SlotBoard> board, int rank, EdgePlan plan, PeerWaiter& waiter,
             std::int64_t staleness);

  // As Exchange has them. `early`: as fetch_early().
  std::vector<Arrival> fetch(std::int64_t round, bool early);
  bool await(Arrival& arrival, std::size_t bytes);
  Arrival::State look(int source, std::int64_t round);
  bool is_intact(const Arrival& arrival) const;
  void complete(std::int64_t rounds);

 private:
  Arrival fetch(int source, std::int64_t round, bool early);
  bool exact() const { return staleness_ == 0; }
  bool is_recent(std::int64_t first, std::int64_t last, std::int64_t round) const;
  bool find(Arrival& arrival, std::int64_t round) const;
  bool find_arriving(Arrival& arrival, std::int64_t round) const;
  bool is_published(int worker, std::uint64_t sequence) const;
  bool has_arrived(const Arrival& arrival) const;
  void note_read(Arrival& arrival, std::int64_t round);

  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  EdgePlan plan_;
  PeerWaiter& waiter_;
  std::int64_t staleness_;
  std::vector<std::uint64_t> last_read_;  ///< sequence, by worker
};

}  // namespace fast::exchange
