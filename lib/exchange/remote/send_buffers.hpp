// A worker's publications on their way to readers on other hosts: one copy for all of them. A slot
// is written anew long before a slow link has brought it over, when nobody waits for the reader.
#pragma once

#include <memory>
#include <vector>

#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// A copy of one publication's message, made piece by piece: the first is on its way while the next
/// is copied.
class SendBuffer {
 public:
  SendBuffer(std::shared_ptr<const SlotBoard> board, int rank)
      : board_(std::move(board)), rank_(rank), bytes_(SlotBoard::message_bytes(board_->shape())) {}

  /// Of publication `sequence`, whose first round is `round`, from now on.
  void assign(std::uint64_t sequence, std::int64_t round);
  std::uint64_t sequence() const { return sequence_; }
  std::size_t size() const { return bytes_.size(); }

  /// The first bytes of the message, at least so many of which have been copied.
  const std::byte* first(std::size_t bytes);
  /// Whether all that was copied is of the one publication.
  bool stands() const;

 private:
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  std::vector<std::byte> bytes_;
  std::size_t copied_ = 0;
  std::uint64_t sequence_ = 0;
  std::int64_t round_ = 0;
  bool stood_ = false;  ///< when the last byte was copied
};

class SendBuffers {
 public:
  SendBuffers(std::shared_ptr<const SlotBoard> board, int rank)
      : board_(std::move(board)), rank_(rank) {}

  /// The publication's buffer, for as long as somebody holds it.
  std::shared_ptr<SendBuffer> buffer(std::uint64_t sequence, std::int64_t round);

 private:
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  std::vector<std::shared_ptr<SendBuffer>> buffers_;  ///< no more than readers at once, and one
};

}  // namespace fast::exchange
