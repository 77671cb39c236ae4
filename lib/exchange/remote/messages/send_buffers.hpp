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
      : board_(std::move(board)), rank_(rank), bytes_(board_->layout().message_bytes()) {}

  /// From now on a buffer of `part` of publication `sequence`, whose first round is `round`.
  void assign(std::uint64_t sequence, std::int64_t round, const PayloadPart& part);
  /// A slot has its next round a moment before its next sequence.
  bool is_of(std::uint64_t sequence, std::int64_t round, const PayloadPart& part) const {
    return sequence_ == sequence && round_ == round && part_ == part;
  }
  /// Of the message.
  const PayloadPart& part() const { return part_; }

  /// The message, whose part has been copied up to byte `end` of the message at least.
  const std::byte* up_to(std::size_t end);
  /// True when the whole part has been copied and belongs to that publication.
  bool is_intact() const;

 private:
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  std::vector<std::byte> bytes_;
  PayloadPart part_{0, 0};
  std::size_t copied_ = 0;  ///< up to this byte of the message
  std::uint64_t sequence_ = 0;
  std::int64_t round_ = 0;
  bool was_intact_ = false;  ///< when the last byte was copied
};

class SendBuffers {
 public:
  SendBuffers(std::shared_ptr<const SlotBoard> board, int rank)
      : board_(std::move(board)), rank_(rank) {}

  /// The buffer of a part of the publication, or of all. It is reused after all its holders have
  /// released it.
  std::shared_ptr<SendBuffer> buffer(std::uint64_t sequence, std::int64_t round,
                                     PayloadPart part = {});

 private:
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  std::vector<std::shared_ptr<SendBuffer>> buffers_;  ///< at most one more than readers
};

}  // namespace fast::exchange
