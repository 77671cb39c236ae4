#include "exchange/remote/messages/send_buffers.hpp"

#include <algorithm>
#include <cstring>

#include "exchange/shared/seqlock.hpp"

namespace fast::exchange {

void SendBuffer::assign(std::uint64_t sequence, std::int64_t round, const MessagePart& part) {
  sequence_ = sequence;
  round_ = round;
  part_ = part;
  copied_ = at_ = 0;
  bytes_.resize(std::max(bytes_.size(), part.size_bytes()));
  was_intact_ = true;
}

const std::byte* SendBuffer::up_to(std::size_t bytes) {
  if (copied_ >= bytes) return bytes_.data();
  while (copied_ < bytes) {
    const PayloadPart run = part_.run(at_, bytes - copied_);
    std::byte* to = bytes_.data() + copied_;
    const std::byte* slot = board_->slot(rank_, sequence_) + run.begin;
    const std::byte* from = read_optimistically(slot, to, run.size_bytes());
    if (from != to) std::memcpy(to, from, run.size_bytes());
    copied_ += run.size_bytes();
    at_ = run.end;
  }
  was_intact_ = board_->still_holds(rank_, sequence_, round_);
  return bytes_.data();
}

bool SendBuffer::is_intact() const { return copied_ == part_.size_bytes() && was_intact_; }

std::shared_ptr<SendBuffer> SendBuffers::buffer(std::uint64_t sequence, std::int64_t round,
                                                const MessagePart& part) {
  for (const auto& buffer : buffers_) {
    if (buffer->is_of(sequence, round, part)) return buffer;
  }
  auto spare =
      std::ranges::find_if(buffers_, [](const auto& buffer) { return buffer.use_count() == 1; });
  if (spare == buffers_.end())
    spare = buffers_.insert(spare, std::make_shared<SendBuffer>(board_, rank_));
  (*spare)->assign(sequence, round, part);
  return *spare;
}

}  // namespace fast::exchange
