// Publishes payloads in this worker's own slots.
#pragma once

#include <array>
#include <memory>

#include "exchange/shared/peer_waiter.hpp"
#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// Writes slot after slot. At staleness 0 with backpressure: a slot is written again only after all
/// readers of its rounds have read it. Above 0, readers check by themselves (seqlock.hpp).
class SlotWriter {
 public:
  /// `waiter` must outlive this object.
  SlotWriter(std::shared_ptr<const SlotBoard> board, int rank, EdgePlan plan, PeerWaiter& waiter,
             bool waits_for_readers);

  // As Exchange has them.
  MutablePayload acquire();
  void publish(std::int64_t round, bool with_weights);
  Payload published() const;
  std::uint64_t sequence() const { return sequence_; }

 private:
  struct Rounds {
    std::int64_t first = -1, last = -1;
  };
  void wait_for_readers(const Rounds& rounds);
  void publish_acquired(std::int64_t round, bool with_weights);

  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  EdgePlan plan_;
  PeerWaiter& waiter_;
  bool waits_for_readers_;
  std::uint64_t sequence_ = 0;
  bool acquired_ = false;
  std::array<Rounds, slot_count> rounds_;
};

}  // namespace fast::exchange
