// A worker's heart: it beats in the worker's header, listens for the others' signs of life, and
// passes on that somebody makes progress.
#pragma once

#include <memory>

#include "exchange/failure_detector.hpp"
#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// What a worker's header, or its mirror, shows.
PeerState state_of(const WorkerHeader& header);

class Heart {
 public:
  Heart(std::shared_ptr<const SlotBoard> board, int rank, Seconds suspect_after);

  /// Ten times a second, on one thread.
  void beat();

  // All else may be called by any thread.
  const std::shared_ptr<const SlotBoard>& board() const { return board_; }
  int rank() const { return rank_; }
  PeerState own() const { return state_of(board_->header(rank_)); }
  /// What the worker shows now.
  PeerState look(int worker);
  /// Whether it has shown no sign of life for too long, and for how long.
  bool is_suspect(int worker);
  Seconds silence(int worker) const { return detector_.silence(worker); }

 private:
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  FailureDetector detector_;
  std::uint64_t arrived_ = 0;  ///< parts of messages, from all workers, when it beat last
};

}  // namespace fast::exchange
