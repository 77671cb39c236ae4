#include "train/control/agreement.hpp"

#include <algorithm>

namespace fast::train {
namespace {
constexpr Request requests[] = {Request::save, Request::stop};
/// Times `ahead`: so many rounds are not far.
constexpr std::int64_t near_rounds = 10;

/// Above staleness 0, a worker that has ended saves until all have.
bool answers(const AgreementRecords& records, std::size_t worker, Request what, bool exact) {
  if (records.is_running(worker)) return true;
  return what == Request::save && !exact && records.takes_part(worker) &&
         !records.has_left(worker) && !records.has(worker, Mark::concluded);
}

/// A worker that takes part, has not left and is not given up has not come to that step.
bool lacks(const AgreementRecords& records, std::size_t worker, Step step) {
  if (!records.takes_part(worker) || records.is_given_up(worker) || records.has_left(worker))
    return false;
  const auto has = [&](Mark mark) { return records.has(worker, mark); };
  if (step == Step::end) return records.is_running(worker);
  if (step == Step::conclude) return !has(Mark::concluded);
  return !has(Mark::saved) && !has(Mark::unsaved);
}

}  // namespace

/// A checkpoint that is settled and not yet taken is the one that is asked for.
void Agreement::request(Request what) {
  if (what == Request::save && records_.newest_settled(what).number > saved_) return;
  const std::uint64_t next = what == Request::stop ? 1 : saved_ + 1;
  records_.want(what, next);
}

void Agreement::tick(double elapsed_s) {
  records_.beat();
  signs_.look(elapsed_s, [this](std::size_t worker) { return records_.beat_of(worker); });
  for (const Request what : requests) {
    records_.want(what, records_.newest_wanted(what));
    records_.settle(what, records_.newest_settled(what));
    answer(what);
    settle(what);
  }
}

/// This worker's answer; empty: it has none yet.
std::optional<std::int64_t> Agreement::bound(Request what) const {
  if (!records_.is_running(records_.rank())) return records_.rounds_of_ended(records_.rank());
  if (!begun_) return std::nullopt;
  return *begun_ + (what == Request::save ? ahead_ : 0);
}

/// A further checkpoint waits until this worker has taken the last one.
void Agreement::answer(Request what) {
  const std::uint64_t wanted = records_.wanted(what);
  const bool behind = what == Request::save && records_.newest_settled(what).number > saved_;
  if (behind || !answers(records_, records_.rank(), what, exact_)) return;
  if (records_.answer_of(records_.rank(), what).number >= wanted) return;
  if (const auto round = bound(what)) records_.answer(what, {wanted, *round});
}

void Agreement::settle(Request what) {
  const std::uint64_t wanted = records_.newest_wanted(what);
  if (records_.newest_settled(what).number >= wanted || !records_.is_running(records_.rank()))
    return;
  // Stale workers' checkpoints are of different rounds: the name is one that no other has.
  std::int64_t round = exact_ ? 0
                              : 1 + std::max(records_.newest_settled(Request::save).round,
                                             records_.newest_settled(Request::stop).round);
  for (std::size_t worker = 0; worker < records_.all().size(); ++worker) {
    const bool is_running = records_.is_running(worker);
    if (!is_running) round = std::max(round, records_.rounds_of_ended(worker));
    if (!answers(records_, worker, what, exact_)) continue;
    const bool is_awaited = !signs_.is_silent(worker);
    if (is_awaited && is_running && worker < records_.rank()) return;  // it settles
    const NumberedRound answer = records_.answer_of(worker, what);
    if (answer.number >= wanted) round = std::max(round, answer.round);
    if (is_awaited && answer.number < wanted) return;
  }
  records_.settle(what, {wanted, with_newcomers(round)});
}

/// Before newcomers begin, a checkpoint has no file of theirs. It needs none before the growth.
std::int64_t Agreement::with_newcomers(std::int64_t round) const {
  const bool has_grown = round >= grown_in_;
  const bool is_near = newcomers_begin_ - round <= near_rounds * ahead_;
  return exact_ && has_grown && is_near ? std::max(round, newcomers_begin_) : round;
}

bool Agreement::is_due(Request what, std::int64_t rounds) const {
  const NumberedRound settled = records_.newest_settled(what);
  return settled.number > handled(what) && (!exact_ || rounds >= settled.round);
}

bool Agreement::holds(Request what, std::int64_t round) const {
  const NumberedRound answer = records_.answer_of(records_.rank(), what);
  return answer.number > records_.newest_settled(what).number && round > answer.round;
}

void Agreement::join(std::int64_t rounds) {
  const NumberedRound settled = records_.newest_settled(Request::save);
  if (!exact_ || settled.round <= rounds) saved_ = settled.number;
}

/// Before the first round, the worker could not answer otherwise.
void Agreement::wait(std::int64_t rounds) {
  if (!begun_) begun_ = rounds;
  ahead_ = 0;
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

void Agreement::saved() { saved_ = records_.newest_settled(Request::save).number; }

bool Agreement::is_busy() const {
  return std::any_of(std::begin(requests), std::end(requests), [&](Request what) {
    return records_.newest_wanted(what) > records_.newest_settled(what).number;
  });
}

bool Agreement::all_have(Step step) const {
  for (std::size_t worker = 0; worker < records_.all().size(); ++worker)
    if (lacks(records_, worker, step) && !signs_.is_silent(worker)) return false;
  return true;
}

void Agreement::give_up_without(Step step) {
  for (std::size_t worker = 0; worker < records_.all().size(); ++worker)
    if (lacks(records_, worker, step)) records_.give_up(worker);
}

}  // namespace fast::train
