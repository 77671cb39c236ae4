#include "train/control/agreement_records.hpp"

#include <algorithm>

namespace fast::train {
namespace {

constexpr int round_bits = 40;
constexpr std::uint64_t round_mask = (std::uint64_t{1} << round_bits) - 1;
constexpr int mark_bits = 60;
constexpr std::uint64_t all_marks = std::uint64_t{7} << mark_bits;

std::uint64_t pack(NumberedRound value) {
  return value.number << round_bits | (static_cast<std::uint64_t>(value.round) & round_mask);
}
NumberedRound unpack(std::uint64_t word) {
  return {word >> round_bits, static_cast<std::int64_t>(word & round_mask)};
}

std::size_t index(Request what) { return static_cast<std::size_t>(what); }

void raise(AgreementRecord::Word& word, std::uint64_t value) {
  if (word.load(std::memory_order_relaxed) < value) word.store(value, std::memory_order_release);
}

std::uint64_t read(const AgreementRecord::Word& word) {
  return word.load(std::memory_order_acquire);
}

/// Of the words that the worker itself writes, in the order in which they are sent.
template <class F>
void for_each_word(AgreementRecord& record, const F& f) {
  f(record.beat);
  f(record.stage);
  f(record.next_epoch);
  for (auto* words : {&record.wanted, &record.answered, &record.settled}) {
    for (auto& word : *words) f(word);
  }
}

Stage stage_in(std::uint64_t word) { return static_cast<Stage>((word & ~all_marks) >> round_bits); }

}  // namespace

std::uint64_t AgreementRecords::newest_wanted(Request what) const {
  std::uint64_t newest = 0;
  for (const auto* record : records_) newest = std::max(newest, read(record->wanted[index(what)]));
  return newest;
}

NumberedRound AgreementRecords::newest_settled(Request what) const {
  std::uint64_t newest = 0;
  for (const auto* record : records_) newest = std::max(newest, read(record->settled[index(what)]));
  return unpack(newest);
}

NumberedRound AgreementRecords::answer_of(std::size_t worker, Request what) const {
  return unpack(read(records_[worker]->answered[index(what)]));
}

std::uint64_t AgreementRecords::beat_of(std::size_t worker) const {
  return read(records_[worker]->beat);
}

bool AgreementRecords::is_running(std::size_t worker) const {
  return takes_part(worker) && stage_in(read(records_[worker]->stage)) == Stage::running;
}

std::int64_t AgreementRecords::rounds_of_ended(std::size_t worker) const {
  return unpack(read(records_[worker]->stage)).round;
}

bool AgreementRecords::any_was_stopped() const {
  return std::any_of(records_.begin(), records_.end(), [](const AgreementRecord* record) {
    return stage_in(read(record->stage)) == Stage::stopped;
  });
}

bool AgreementRecords::has_left(std::size_t worker) const {
  return stage_in(read(records_[worker]->stage)) == Stage::left;
}

bool AgreementRecords::has(std::size_t worker, Mark what) const {
  return (read(records_[worker]->stage) >> mark_bits & static_cast<std::uint64_t>(what)) != 0;
}

bool AgreementRecords::is_given_up(std::size_t worker) const {
  return read(records_[worker]->given_up) != 0;
}

NumberedRound AgreementRecords::next_epoch() const {
  std::uint64_t furthest = 0;
  for (const auto* record : records_) furthest = std::max(furthest, read(record->next_epoch));
  return unpack(furthest);
}

std::uint64_t AgreementRecords::wanted(Request what) const {
  return read(own().wanted[index(what)]);
}

void AgreementRecords::beat() { own().beat.fetch_add(1, std::memory_order_relaxed); }

void AgreementRecords::want(Request what, std::uint64_t number) {
  raise(own().wanted[index(what)], number);
}

void AgreementRecords::answer(Request what, NumberedRound bound) {
  raise(own().answered[index(what)], pack(bound));
}

void AgreementRecords::settle(Request what, NumberedRound settled) {
  raise(own().settled[index(what)], pack(settled));
}

void AgreementRecords::end(Stage stage, std::int64_t rounds) {
  raise(own().stage, pack({static_cast<std::uint64_t>(stage), rounds}));
}

void AgreementRecords::mark(Mark what) {
  raise(own().stage, read(own().stage) | static_cast<std::uint64_t>(what) << mark_bits);
}

void AgreementRecords::note_next_epoch(NumberedRound epoch) {
  raise(own().next_epoch, pack(epoch));
}

void AgreementRecords::give_up(std::size_t worker) { raise(records_[worker]->given_up, 1); }

/// Whom a worker has given up is read last and taken over first: it is known wherever it is known
/// that the worker has concluded, also to other processes of this host.
void copy(const AgreementRecords& records, std::span<std::uint64_t> words) {
  auto to = words.begin();
  for (AgreementRecord* record : records.all()) {
    for_each_word(*record, [&](const AgreementRecord::Word& word) { *to++ = read(word); });
  }
  for (const AgreementRecord* record : records.all()) *to++ = read(record->given_up);
}

void take_over(const AgreementRecords& records, std::span<const std::uint64_t> words,
               const std::vector<bool>& here) {
  auto given_up = words.end() - static_cast<std::ptrdiff_t>(records.all().size());
  for (AgreementRecord* record : records.all()) raise(record->given_up, *given_up++);
  auto from = words.begin();
  for (std::size_t worker = 0; worker < records.all().size(); ++worker) {
    for_each_word(*records.all()[worker], [&](AgreementRecord::Word& word) {
      const std::uint64_t value = *from++;
      if (!here[worker]) raise(word, value);
    });
  }
}

}  // namespace fast::train
