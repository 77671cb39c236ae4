#include "membership/records.hpp"

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

namespace {

constexpr int phase_bits = 4, seat_bits = 20, version_bits = 20;
constexpr int seat_at = phase_bits, version_at = seat_at + seat_bits,
              changes_at = version_at + version_bits;
constexpr int republished_bits = 28;  // of a word of progress
constexpr int mark_bits = 60;
constexpr std::uint64_t all_marks = std::uint64_t{7} << mark_bits;

constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

std::uint64_t word_of_claim(const SeatClaim& claim) {
  return claim.changes << changes_at | (claim.version & mask(version_bits)) << version_at |
         static_cast<std::uint64_t>(claim.seat) << seat_at |
         static_cast<std::uint64_t>(claim.phase);
}

SeatClaim claim_in(std::uint64_t word) {
  return {word >> changes_at, word >> version_at & mask(version_bits),
          static_cast<int>(word >> seat_at & mask(seat_bits)),
          static_cast<SeatClaim::Phase>(word & mask(phase_bits))};
}

}  // namespace

SeatClaim SeatRecords::claim(int rank) const { return claim_in(read(rank, word::claim)); }

void SeatRecords::set_claim(SeatClaim claim) {
  claim.changes = this->claim(rank()).changes + 1;
  raise(word::claim, word_of_claim(claim));
}

std::int64_t SeatRecords::progress(int rank) const {
  return static_cast<std::int64_t>(read(rank, word::progress) >> republished_bits);
}

std::int64_t SeatRecords::progress_by_rounds(int rank) const {
  const std::uint64_t word = read(rank, word::progress);
  return static_cast<std::int64_t>((word >> republished_bits) - (word & mask(republished_bits)));
}

void SeatRecords::set_progress(std::int64_t combinations) {
  const std::uint64_t republished = own(word::republished) & mask(republished_bits);
  raise(word::progress, static_cast<std::uint64_t>(combinations) << republished_bits | republished);
}

SpareWork SeatRecords::work_of(int rank) const {
  SpareWork work{.made_up = static_cast<std::int64_t>(read(rank, word::made_up)),
                 .repeated = read(rank, word::repeated)};
  if (const std::uint64_t began = read(rank, word::began); began > 0)
    work.began_in = static_cast<std::int64_t>(began) - 1;
  return work;
}

void SeatRecords::set_work(const SpareWork& work) {
  raise(word::repeated, work.repeated);
  raise(word::made_up, static_cast<std::uint64_t>(work.made_up));
  if (work.began_in) raise(word::began, static_cast<std::uint64_t>(*work.began_in) + 1);
}

Stage RunRecords::stage_of(int rank) const {
  return static_cast<Stage>(numbered_round_in(read(rank, word::stage) & ~all_marks).number);
}

std::int64_t RunRecords::rounds_of_ended(int rank) const {
  return numbered_round_in(read(rank, word::stage)).round;
}

bool RunRecords::any_has_come_to(Stage stage) const {
  for (int rank = 0; rank < size(); ++rank)
    if (stage_of(rank) == stage) return true;
  return false;
}

bool RunRecords::has(int rank, Mark what) const {
  return (read(rank, word::stage) >> mark_bits & static_cast<std::uint64_t>(what)) != 0;
}

void RunRecords::end(Stage stage, std::int64_t rounds) {
  raise(word::stage, word_of({static_cast<std::uint64_t>(stage), rounds}));
}

void RunRecords::mark(Mark what) {
  raise(word::stage, own(word::stage) | static_cast<std::uint64_t>(what) << mark_bits);
}

}  // namespace fast::membership
