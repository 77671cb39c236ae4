// Reads the slots of other workers, and mirrors of slots of other hosts.
#pragma once

#include <memory>
#include <vector>

#include "exchange/shared/peer_waiter.hpp"
#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// At staleness 0 finds exactly the publication of a round; above 0 the newest one that is recent
/// enough. Payloads are read in place; is_intact() says afterwards whether that worked.
///
/// A reader of this worker completes round t with this worker's publication of round t - staleness
/// or a later one, or without this worker. If it has completed round t and there was no such
/// publication yet, it has gone on without this worker. This worker then does not use that
/// neighbor's publications of the time either. Otherwise this worker alone would move towards the
/// neighbor, and the mean of both would move.
class SlotReader {
 public:
  /// `waiter` must outlive this object.
  SlotReader(std::shared_ptr<const SlotBoard> board, int rank, EdgePlan plan, PeerWaiter& waiter,
             std::int64_t staleness);

  /// Call it before each publication. Notes which readers have completed the round already.
  void before_publication(std::int64_t round);

  // As Exchange has them. `early`: as fetch_early().
  std::vector<Arrival> fetch(std::int64_t round, bool early);
  bool await(Arrival& arrival, std::size_t bytes);
  Arrival::State look(int source, std::int64_t round);
  bool is_intact(const Arrival& arrival) const;
  void complete(std::int64_t rounds);

 private:
  Arrival fetch(int source, const RoundEdges& edges, std::int64_t round, bool early);
  bool exact() const { return staleness_ == 0; }
  bool is_recent(std::int64_t first, std::int64_t last, std::int64_t round) const;
  bool find(Arrival& arrival, std::int64_t round) const;
  bool find_arriving(Arrival& arrival, std::int64_t round) const;
  bool is_published(int worker, std::uint64_t sequence) const;
  bool has_arrived(const Arrival& arrival) const;
  bool has_completed(int worker, std::int64_t round) const;
  bool has_left_out(int source, const RoundEdges& edges) const;
  bool goes_on_alone(int source, std::int64_t round) const;
  void note_read(Arrival& arrival, std::int64_t round);

  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  EdgePlan plan_;
  PeerWaiter& waiter_;
  std::int64_t staleness_;
  std::vector<std::uint64_t> last_read_;  ///< sequence, by worker
  std::vector<bool> absent_;              ///< by worker: in the latest fetch from it
  std::vector<int> ahead_;  ///< readers that had completed the round of the latest publication
                            ///< before it was published; at staleness 0
};

}  // namespace fast::exchange
