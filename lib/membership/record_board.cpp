#include "membership/record_board.hpp"

#include <algorithm>

namespace fast::membership {
namespace {

constexpr int round_bits = 40;
constexpr std::uint64_t round_mask = (std::uint64_t{1} << round_bits) - 1;

}  // namespace

std::uint64_t word_of(NumberedRound value) {
  return value.number << round_bits | (static_cast<std::uint64_t>(value.round) & round_mask);
}

NumberedRound numbered_round_in(std::uint64_t word) {
  return {word >> round_bits, static_cast<std::int64_t>(word & round_mask)};
}

RecordBoard::RecordBoard(std::span<std::byte* const> parts, int rank, const Format& format)
    : rank_(rank), format_(format) {
  for (std::byte* part : parts) records_.push_back(reinterpret_cast<Word*>(part));
}

std::uint64_t RecordBoard::newest(std::size_t word) const {
  std::uint64_t newest = 0;
  for (int rank = 0; rank < size(); ++rank) newest = std::max(newest, read(rank, word));
  return newest;
}

/// Several processes of a host raise the common words.
void RecordBoard::raise(Word& word, std::uint64_t value) {
  std::uint64_t now = word.load(std::memory_order_seq_cst);
  while (now < value && !word.compare_exchange_weak(now, value)) continue;
}

void RecordBoard::copy_to(std::span<std::uint64_t> words) const {
  const auto copy = [&](int rank, std::size_t word) {
    words[static_cast<std::size_t>(rank) * format_.words + word] = read(rank, word);
  };
  for (int rank = 0; rank < size(); ++rank) {
    for (std::size_t word = 0; word < format_.words; ++word) copy(rank, word);
  }
  for (int rank = 0; rank < size(); ++rank) copy(rank, format_.common);
}

void RecordBoard::take_over(std::span<const std::uint64_t> words,
                            const std::vector<bool>& here) const {
  const auto take = [&](int rank, std::size_t word) {
    raise(at(rank, word), words[static_cast<std::size_t>(rank) * format_.words + word]);
  };
  for (int rank = 0; rank < size(); ++rank) take(rank, format_.common);
  for (int rank = 0; rank < size(); ++rank) {
    if (here[static_cast<std::size_t>(rank)]) continue;
    for (std::size_t word = format_.words; word-- > 0;) take(rank, word);
  }
}

}  // namespace fast::membership
