// Copies of a worker's publications for readers on other hosts: one copy for all readers. The slot
// itself may be written again long before a slow link has sent it.
#pragma once

#include <memory>
#include <vector>

#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// A copy of what is sent of one publication's message, made part by part: MPI sends the first part
/// while the next one is copied.
class SendBuffer {
 public:
  SendBuffer(std::shared_ptr<const SlotBoard> board, int rank)
      : board_(std::move(board)), rank_(rank) {}

  /// From now on a buffer of `part` of publication `sequence`, whose first round is `round`.
  void assign(std::uint64_t sequence, std::int64_t round, const MessagePart& part);
  /// A slot has its next round a moment before its next sequence.
  bool is_of(std::uint64_t sequence, std::int64_t round, const MessagePart& part) const {
    return sequence_ == sequence && round_ == round && part_ == part;
  }
  /// Of the message.
  const MessagePart& part() const { return part_; }

  /// The part without its gap, of which the first `bytes` at least have been copied.
  const std::byte* up_to(std::size_t bytes);
  /// True when the whole part has been copied and belongs to that publication.
  bool is_intact() const;

 private:
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  std::vector<std::byte> bytes_;
  MessagePart part_{0, {0, 0}};
  std::size_t copied_ = 0;  ///< bytes
  std::size_t at_ = 0;      ///< up to this byte of the message
  std::uint64_t sequence_ = 0;
  std::int64_t round_ = 0;
  bool was_intact_ = false;  ///< when the last byte was copied
};

class SendBuffers {
 public:
  SendBuffers(std::shared_ptr<const SlotBoard> board, int rank)
      : board_(std::move(board)), rank_(rank) {}

  /// The buffer of a part of the publication. It is reused after all its holders have released it.
  std::shared_ptr<SendBuffer> buffer(std::uint64_t sequence, std::int64_t round,
                                     const MessagePart& part);
  /// Of all of it.
  std::shared_ptr<SendBuffer> buffer(std::uint64_t sequence, std::int64_t round) {
    return buffer(sequence, round, board_->layout().carried({}));
  }

 private:
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  std::vector<std::shared_ptr<SendBuffer>> buffers_;  ///< at most one more than readers
};

}  // namespace fast::exchange
