#include "exchange/outbox.hpp"

#include <algorithm>
#include <cstring>

#include "exchange/optimistic.hpp"

namespace fast::exchange {

void Letter::address(std::uint64_t sequence, std::int64_t round) {
  sequence_ = sequence;
  round_ = round;
  copied_ = 0;
}

const std::byte* Letter::first(std::size_t bytes) {
  if (copied_ < bytes) {
    std::byte* to = bytes_.data() + copied_;
    const std::byte* slot = board_->slot(rank_, sequence_) + copied_;
    const std::byte* from = read_optimistically(slot, to, bytes - copied_);
    if (from != to) std::memcpy(to, from, bytes - copied_);
    copied_ = bytes;
    stood_ = board_->still_holds(rank_, sequence_, round_);
  }
  return bytes_.data();
}

bool Letter::stands() const { return copied_ == size() && stood_; }

std::shared_ptr<Letter> Outbox::letter(std::uint64_t sequence, std::int64_t round) {
  for (const auto& letter : letters_) {
    if (letter->sequence() == sequence) return letter;
  }
  auto spare = std::find_if(letters_.begin(), letters_.end(),
                            [](const auto& letter) { return letter.use_count() == 1; });
  if (spare == letters_.end())
    spare = letters_.insert(spare, std::make_shared<Letter>(board_, rank_));
  (*spare)->address(sequence, round);
  return *spare;
}

}  // namespace fast::exchange
