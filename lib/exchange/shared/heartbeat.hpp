// The heartbeat of a worker: counts up in its header, observes the other workers' signs of life,
// and passes on that some worker makes progress.
#pragma once

#include <memory>
#include <optional>

#include "exchange/peers.hpp"
#include "exchange/shared/slot_board.hpp"
#include "membership/liveness.hpp"

namespace fast::exchange {

class Heartbeat {
 public:
  /// `suspect_after`: see FailureDetector.
  Heartbeat(std::shared_ptr<const SlotBoard> board, int rank, std::optional<Seconds> suspect_after);

  /// Ten times a second, on one thread.
  void beat();

  // Any thread may call the functions below.
  const std::shared_ptr<const SlotBoard>& board() const { return board_; }
  int rank() const { return rank_; }
  PeerState own() const { return state_of(board_->header(rank_)); }
  /// What the worker shows now; a sign of life if it has changed.
  PeerState look(int worker);
  /// True when the worker has shown no sign of life for longer than the detector's
  /// suspect_after().
  bool is_suspect(int worker);
  const membership::FailureDetector& detector() const { return detector_; }

 private:
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  membership::FailureDetector detector_;
  std::uint64_t arrived_ = 0;  ///< parts of messages, from all workers, at the latest beat
};

}  // namespace fast::exchange
