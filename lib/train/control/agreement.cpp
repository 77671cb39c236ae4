#include "train/control/agreement.hpp"

#include <algorithm>

namespace fast::train {
namespace {

constexpr int round_bits = 40;
constexpr std::uint64_t round_mask = (std::uint64_t{1} << round_bits) - 1;
constexpr int mark_bits = 60;
constexpr std::uint64_t all_marks = std::uint64_t{7} << mark_bits;
constexpr Request requests[] = {Request::save, Request::stop};

std::uint64_t pack(std::uint64_t number, std::int64_t round) {
  return number << round_bits | (static_cast<std::uint64_t>(round) & round_mask);
}
std::uint64_t number_in(std::uint64_t word) { return word >> round_bits; }
std::int64_t round_in(std::uint64_t word) { return static_cast<std::int64_t>(word & round_mask); }

std::size_t index(Request what) { return static_cast<std::size_t>(what); }

void raise(AgreementRecord::Word& word, std::uint64_t value) {
  if (word.load(std::memory_order_relaxed) < value) word.store(value, std::memory_order_release);
}

std::uint64_t read(const AgreementRecord::Word& word) {
  return word.load(std::memory_order_acquire);
}

/// In the order in which they are sent.
template <class F>
void for_each_word(AgreementRecord& record, const F& f) {
  f(record.beat);
  f(record.stage);
  for (auto* words : {&record.wanted, &record.answered, &record.settled}) {
    for (auto& word : *words) f(word);
  }
}

Stage stage_in(std::uint64_t word) { return static_cast<Stage>((word & ~all_marks) >> round_bits); }

}  // namespace

Agreement::Agreement(std::vector<AgreementRecord*> records, int rank, bool exact,
                     double silent_after_s)
    : records_(std::move(records)),
      rank_(rank),
      exact_(exact),
      silent_after_s_(silent_after_s),
      signs_(records_.size()) {}

std::uint64_t Agreement::newest_wanted(Request what) const {
  std::uint64_t newest = 0;
  for (const auto* record : records_) newest = std::max(newest, read(record->wanted[index(what)]));
  return newest;
}

Agreement::Settled Agreement::newest_settled(Request what) const {
  std::uint64_t newest = 0;
  for (const auto* record : records_) newest = std::max(newest, read(record->settled[index(what)]));
  return {number_in(newest), round_in(newest)};
}

Agreement::Settled Agreement::answer_of(std::size_t worker, Request what) const {
  const std::uint64_t word = read(records_[worker]->answered[index(what)]);
  return {number_in(word), round_in(word)};
}

bool Agreement::is_running(std::size_t worker) const {
  return stage_in(read(records_[worker]->stage)) == Stage::running;
}

bool Agreement::is_silent(std::size_t worker) const {
  return worker != static_cast<std::size_t>(rank_) &&
         time_s_ - signs_[worker].at_s > silent_after_s_;
}

void Agreement::request(Request what) {
  const std::uint64_t next =
      what == Request::stop ? 1 : std::max(saved_, newest_settled(what).number) + 1;
  raise(own().wanted[index(what)], next);
}

void Agreement::tick(double elapsed_s) {
  own().beat.fetch_add(1, std::memory_order_relaxed);
  listen(elapsed_s);
  for (const Request what : requests) {
    raise(own().wanted[index(what)], newest_wanted(what));
    const Settled known = newest_settled(what);
    raise(own().settled[index(what)], pack(known.number, known.round));
    answer(what);
    settle(what);
  }
}

void Agreement::listen(double elapsed_s) {
  time_s_ += elapsed_s;
  for (std::size_t worker = 0; worker < records_.size(); ++worker) {
    const std::uint64_t beat = read(records_[worker]->beat);
    if (beat != signs_[worker].beat) signs_[worker] = {beat, time_s_};
  }
}

/// A further checkpoint waits until this worker has taken the last one.
void Agreement::answer(Request what) {
  const std::uint64_t wanted = read(own().wanted[index(what)]);
  const bool behind = what == Request::save && newest_settled(what).number > saved_;
  if (behind || !begun_ || !is_running(static_cast<std::size_t>(rank_))) return;
  if (answer_of(static_cast<std::size_t>(rank_), what).number >= wanted) return;
  const std::int64_t ahead = what == Request::save ? ahead_ : 0;
  raise(own().answered[index(what)], pack(wanted, *begun_ + ahead));
}

void Agreement::settle(Request what) {
  const std::uint64_t wanted = newest_wanted(what);
  if (newest_settled(what).number >= wanted) return;
  // Stale workers' checkpoints are of different rounds: the name is one that no other has.
  std::int64_t round = exact_ ? 0
                              : 1 + std::max(newest_settled(Request::save).round,
                                             newest_settled(Request::stop).round);
  for (std::size_t worker = 0; worker < records_.size(); ++worker) {
    if (is_running(worker)) {
      const bool is_awaited = !is_silent(worker);
      if (is_awaited && worker < static_cast<std::size_t>(rank_)) return;  // it settles
      const Settled answer = answer_of(worker, what);
      if (answer.number >= wanted) round = std::max(round, answer.round);
      if (is_awaited && answer.number < wanted) return;
    } else {
      round = std::max(round, round_in(read(records_[worker]->stage)));
    }
  }
  if (!is_running(static_cast<std::size_t>(rank_))) return;
  raise(own().settled[index(what)], pack(wanted, round));
}

bool Agreement::is_due(Request what, std::int64_t rounds) const {
  const Settled settled = newest_settled(what);
  return settled.number > handled(what) && (!exact_ || rounds >= settled.round);
}

bool Agreement::holds(Request what, std::int64_t round) const {
  const Settled answer = answer_of(static_cast<std::size_t>(rank_), what);
  return answer.number > newest_settled(what).number && round > answer.round;
}

Turn Agreement::take_turn(std::int64_t rounds, std::int64_t ahead) {
  ahead_ = ahead;
  if (is_due(Request::save, rounds)) return Turn::save;
  if (is_due(Request::stop, rounds)) return Turn::stop;
  for (const Request what : requests) {
    if (exact_ && holds(what, rounds + 1)) return Turn::hold;
  }
  begun_ = rounds + 1;
  return Turn::go;
}

void Agreement::saved() { saved_ = newest_settled(Request::save).number; }

std::int64_t Agreement::round_of(Request what) const { return newest_settled(what).round; }

void Agreement::end(Stage stage, std::int64_t rounds) {
  raise(own().stage, pack(static_cast<std::uint64_t>(stage), rounds));
}

bool Agreement::is_busy() const {
  return std::any_of(std::begin(requests), std::end(requests), [&](Request what) {
    return newest_wanted(what) > newest_settled(what).number;
  });
}

template <class Condition>
bool Agreement::all_but(const std::vector<int>& lost, const Condition& condition) const {
  for (std::size_t worker = 0; worker < records_.size(); ++worker) {
    const bool is_lost =
        std::find(lost.begin(), lost.end(), static_cast<int>(worker)) != lost.end();
    if (!is_lost && !condition(worker) && !is_silent(worker)) return false;
  }
  return true;
}

bool Agreement::all_have_ended(const std::vector<int>& lost) const {
  return all_but(lost, [&](std::size_t worker) { return !is_running(worker); });
}

bool Agreement::any_was_stopped() const {
  return std::any_of(records_.begin(), records_.end(), [](const AgreementRecord* record) {
    return stage_in(read(record->stage)) == Stage::stopped;
  });
}

void Agreement::mark(Mark what) {
  raise(own().stage, read(own().stage) | static_cast<std::uint64_t>(what) << mark_bits);
}

bool Agreement::has(std::size_t worker, Mark what) const {
  return (read(records_[worker]->stage) >> mark_bits & static_cast<std::uint64_t>(what)) != 0;
}

bool Agreement::all_have_concluded(const std::vector<int>& lost) const {
  return all_but(lost, [&](std::size_t worker) { return has(worker, Mark::concluded); });
}

bool Agreement::all_have_reported(const std::vector<int>& lost) const {
  return all_but(lost, [&](std::size_t worker) {
    return has(worker, Mark::saved) || has(worker, Mark::unsaved);
  });
}

void Agreement::copy_to(std::span<std::uint64_t> words) const {
  auto to = words.begin();
  for (AgreementRecord* record : records_) {
    for_each_word(*record, [&](const AgreementRecord::Word& word) { *to++ = read(word); });
  }
}

void Agreement::take_over(std::span<const std::uint64_t> words, const std::vector<bool>& here) {
  auto from = words.begin();
  for (std::size_t worker = 0; worker < records_.size(); ++worker) {
    for_each_word(*records_[worker], [&](AgreementRecord::Word& word) {
      const std::uint64_t value = *from++;
      if (!here[worker]) raise(word, value);
    });
  }
}

}  // namespace fast::train
