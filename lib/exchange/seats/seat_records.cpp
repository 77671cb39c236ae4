#include "exchange/seats/seat_records.hpp"

#include <algorithm>

namespace fast::exchange {
namespace {

constexpr int phase_bits = 4, seat_bits = 20, version_bits = 20;
constexpr int seat_at = phase_bits, version_at = seat_at + seat_bits,
              changes_at = version_at + version_bits;

constexpr int growth_round_bits = 40;

constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

std::uint64_t word_of(const SeatClaim& claim) {
  return claim.changes << changes_at | (claim.version & mask(version_bits)) << version_at |
         static_cast<std::uint64_t>(claim.seat) << seat_at |
         static_cast<std::uint64_t>(claim.phase);
}

SeatClaim claim_in(std::uint64_t word) {
  return {word >> changes_at, word >> version_at & mask(version_bits),
          static_cast<int>(word >> seat_at & mask(seat_bits)),
          static_cast<SeatClaim::Phase>(word & mask(phase_bits))};
}

std::uint64_t word_of(const NumberedGrowth& growth) {
  return growth.number << growth_round_bits |
         (static_cast<std::uint64_t>(growth.round) & mask(growth_round_bits));
}

NumberedGrowth growth_in(std::uint64_t word) {
  return {word >> growth_round_bits, static_cast<std::int64_t>(word & mask(growth_round_bits))};
}

void raise_word(SeatRecord::Word& word, std::uint64_t value) {
  if (word.load(std::memory_order_relaxed) < value) word.store(value, std::memory_order_seq_cst);
}

/// In the order in which they are sent.
template <class F>
void for_each_seat_word(SeatRecord& record, const F& f) {
  for (auto* word : {&record.beat, &record.claim, &record.status, &record.progress,
                     &record.republished, &record.repeated, &record.began, &record.made_up,
                     &record.wanted, &record.answered, &record.settled})
    f(*word);
}

}  // namespace

SeatClaim SeatRecords::claim(int rank) const { return claim_in(read(at(rank).claim)); }

void SeatRecords::set_claim(SeatClaim claim) {
  claim.changes = this->claim(rank_).changes + 1;
  at(rank_).claim.store(word_of(claim), std::memory_order_seq_cst);
}

void SeatRecords::set_status(WorkerStatus status) {
  raise_word(at(rank_).status, static_cast<std::uint64_t>(status));
}

void SeatRecords::set_progress(std::int64_t combinations) {
  raise_word(at(rank_).progress, static_cast<std::uint64_t>(combinations));
}

void SeatRecords::set_republished(std::int64_t combinations) {
  raise_word(at(rank_).republished, static_cast<std::uint64_t>(combinations));
}

SpareWork SeatRecords::work_of(int rank) const {
  const SeatRecord& record = at(rank);
  SpareWork work{.made_up = static_cast<std::int64_t>(read(record.made_up)),
                 .repeated = read(record.repeated)};
  if (const std::uint64_t began = read(record.began); began > 0)
    work.began_in = static_cast<std::int64_t>(began) - 1;
  return work;
}

void SeatRecords::set_work(const SpareWork& work) {
  SeatRecord& record = at(rank_);
  raise_word(record.repeated, work.repeated);
  raise_word(record.made_up, static_cast<std::uint64_t>(work.made_up));
  if (work.began_in) raise_word(record.began, static_cast<std::uint64_t>(*work.began_in) + 1);
}

NumberedGrowth SeatRecords::answer_of(int rank) const { return growth_in(read(at(rank).answered)); }

std::uint64_t SeatRecords::newest_wanted() const {
  std::uint64_t newest = 0;
  for (const SeatRecord* record : records_) newest = std::max(newest, read(record->wanted));
  return newest;
}

NumberedGrowth SeatRecords::newest_settled() const {
  std::uint64_t newest = 0;
  for (const SeatRecord* record : records_) newest = std::max(newest, read(record->settled));
  return growth_in(newest);
}

void SeatRecords::want(std::uint64_t growths) { raise_word(at(rank_).wanted, growths); }

void SeatRecords::answer(NumberedGrowth bound) { raise_word(at(rank_).answered, word_of(bound)); }

void SeatRecords::settle(NumberedGrowth settled) {
  raise_word(at(rank_).settled, word_of(settled));
}

void SeatRecords::copy_to(std::span<std::uint64_t> words) const {
  auto to = words.begin();
  for (SeatRecord* record : records_) {
    for_each_seat_word(*record, [&](const SeatRecord::Word& word) { *to++ = read(word); });
  }
}

void SeatRecords::take_over(std::span<const std::uint64_t> words, const std::vector<bool>& here) {
  auto from = words.begin();
  for (std::size_t rank = 0; rank < records_.size(); ++rank) {
    for_each_seat_word(*records_[rank], [&](SeatRecord::Word& word) {
      const std::uint64_t value = *from++;
      if (!here[rank]) raise_word(word, value);
    });
  }
}

}  // namespace fast::exchange
