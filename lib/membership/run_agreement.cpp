#include "membership/run_agreement.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <utility>

namespace fast::membership {
namespace {

constexpr Request requests[] = {Request::save, Request::stop, Request::lower};
/// Times `ahead`: so many rounds are not far.
constexpr std::int64_t near_rounds = 10;
constexpr Seconds longest_news_of_epoch{2};

}  // namespace

RunAgreement::RunAgreement(std::shared_ptr<Coordinator> coordinator,
                           std::shared_ptr<const RankMap> map, Options options)
    : coordinator_(std::move(coordinator)),
      map_(std::move(map)),
      options_(std::move(options)),
      records_(coordinator_->board(), [map = map_](int rank) { return map->has_begun(rank); }),
      saves_(coordinator_->board(), word::save),
      stops_(coordinator_->board(), word::stop),
      lowers_(coordinator_->board(), word::lower),
      lowered_(static_cast<std::uint64_t>(options_.reductions)) {
  coordinator_->add(*this);
}

RunAgreement::~RunAgreement() { coordinator_->remove(*this); }

void RunAgreement::listen() {
  if (asked_ || !options_.stop_requested || !options_.stop_requested()) return;
  asked_ = true;
  request(Request::stop);
}

void RunAgreement::request(Request what) {
  const auto lock = coordinator_->lock();
  propose(what);
}

/// A checkpoint that is settled and not yet taken is the one that is asked for.
void RunAgreement::propose(Request what) {
  if (what == Request::save && saves_.settled().number > saved_) return;
  agreement(what).propose(what == Request::stop ? 1 : saved_ + 1);
}

/// What has been asked for until now is answered with the bound before: here.
void RunAgreement::lower_from(std::int64_t round) {
  const auto lock = coordinator_->lock();
  answer(Request::lower);
  lower_from_ = round;
}

void RunAgreement::lower(std::int64_t number) {
  const auto lock = coordinator_->lock();
  lowers_.propose(static_cast<std::uint64_t>(number));
  answer(Request::lower);
  settle(Request::lower);
}

std::int64_t RunAgreement::reductions(std::int64_t rounds) {
  const Deadline deadline(options_.deadline);
  auto lock = coordinator_->lock();
  answer(Request::lower);
  while (options_.exact && records_.is_running(records_.rank()) && lowers_.holds(rounds + 1)) {
    require_no_hang(deadline, rounds);
    coordinator_->wait(lock);
  }
  take_reductions(rounds);
  return static_cast<std::int64_t>(lowered_);
}

/// A further one is settled only when all workers that train have taken the last one. A worker that
/// was away, or has just come, takes those before.
void RunAgreement::take_reductions(std::int64_t rounds) {
  const NumberedRound settled = lowers_.settled();
  if (settled.number == 0) return;
  const bool in_force = !options_.exact || rounds >= settled.round;
  lowered_ = std::max(lowered_, in_force ? settled.number : settled.number - 1);
}

void RunAgreement::advance() {
  for (const Request what : requests) {
    agreement(what).pass_on();
    answer(what);
    settle(what);
  }
}

bool RunAgreement::is_silent(int rank) const {
  const double after_s = (options_.silent_after + coordinator_->news()).count();
  return coordinator_->liveness().is_silent(rank, after_s);
}

/// Above staleness 0, a worker that has ended saves until all have.
bool RunAgreement::answers(int rank, Request what) const {
  if (records_.is_running(rank)) return true;
  return what == Request::save && !options_.exact && records_.takes_part(rank) &&
         !records_.has_left(rank) && !records_.has(rank, Mark::concluded);
}

/// This worker's answer; empty: it has none yet.
std::optional<std::int64_t> RunAgreement::bound(Request what) const {
  if (!records_.is_running(records_.rank())) return records_.rounds_of_ended(records_.rank());
  if (what == Request::lower) return lower_from_;
  if (!begun_) return std::nullopt;
  return *begun_ + (what == Request::save ? ahead_ : 0);
}

/// A further checkpoint, or reduction of the rate, waits until this worker has taken the last one.
void RunAgreement::answer(Request what) {
  RoundAgreement& agreement = this->agreement(what);
  const std::uint64_t wanted = agreement.proposed();
  const bool behind = what != Request::stop && agreement.settled().number > handled(what);
  if (behind || !answers(records_.rank(), what) || agreement.own_bound().number >= wanted) return;
  if (const auto round = bound(what)) agreement.bind({wanted, *round});
}

void RunAgreement::settle(Request what) {
  RoundAgreement& agreement = this->agreement(what);
  if (!agreement.is_open()) return;
  const std::uint64_t wanted = agreement.proposed();
  using Voice = RoundAgreement::Voice;
  const auto bound = agreement.last_bound(wanted, [&](int rank) {
    if (!answers(rank, what)) return Voice::none;
    if (is_silent(rank)) return Voice::counts;
    return records_.is_running(rank) ? Voice::settles : Voice::awaited;
  });
  if (!bound) return;
  // Stale workers' checkpoints are of different rounds: the name is one that no other has.
  std::int64_t round = *bound;
  if (!options_.exact)
    round = std::max({round, saves_.settled().round + 1, stops_.settled().round + 1});
  for (int rank = 0; rank < records_.size(); ++rank)
    if (!records_.is_running(rank)) round = std::max(round, records_.rounds_of_ended(rank));
  agreement.settle({wanted, what == Request::lower ? round : with_newcomers(round)});
}

/// Before newcomers begin, a checkpoint has no file of theirs. It needs none before the growth.
std::int64_t RunAgreement::with_newcomers(std::int64_t round) const {
  const bool has_grown = round >= grown_in_;
  const bool is_near = newcomers_begin_ - round <= near_rounds * ahead_;
  return options_.exact && has_grown && is_near ? std::max(round, newcomers_begin_) : round;
}

void RunAgreement::join(std::int64_t rounds) {
  const auto lock = coordinator_->lock();
  const NumberedRound settled = saves_.settled();
  if (!options_.exact || settled.round <= rounds) saved_ = settled.number;
}

void RunAgreement::note_newcomers(std::int64_t grown_in, std::int64_t begin) {
  const auto lock = coordinator_->lock();
  grown_in_ = grown_in;
  newcomers_begin_ = begin;
}

/// Before the first round, the worker could not answer otherwise.
void RunAgreement::wait(std::int64_t rounds) {
  const auto lock = coordinator_->lock();
  if (!begun_) begun_ = rounds;
  ahead_ = 0;
}

bool RunAgreement::is_due(Request what, std::int64_t rounds) const {
  const NumberedRound settled = agreement(what).settled();
  return settled.number > handled(what) && (!options_.exact || rounds >= settled.round);
}

RoundDecision RunAgreement::look(std::int64_t rounds, std::int64_t ahead) {
  ahead_ = ahead;
  if (lowers_.is_open()) settle(Request::lower);  // of a host, the last answer may be there
  take_reductions(rounds);
  if (is_due(Request::save, rounds)) return RoundDecision::save;
  if (is_due(Request::stop, rounds)) return RoundDecision::stop;
  if (options_.exact &&
      (saves_.holds(rounds + 1) || stops_.holds(rounds + 1) || lowers_.holds(rounds + 1)))
    return RoundDecision::hold;
  begun_ = rounds + 1;
  return RoundDecision::go;
}

RoundDecision RunAgreement::turn(std::int64_t rounds, std::int64_t ahead) {
  const auto lock = coordinator_->lock();
  return look(rounds, ahead);
}

RoundDecision RunAgreement::take_turn(std::int64_t rounds, std::int64_t ahead) {
  const Deadline deadline(options_.deadline);
  auto lock = coordinator_->lock();
  for (;;) {
    const RoundDecision turn = look(rounds, ahead);
    if (turn != RoundDecision::hold) return turn;
    require_no_hang(deadline, rounds);
    coordinator_->wait(lock);
  }
}

void RunAgreement::require_no_hang(const Deadline& deadline, std::int64_t rounds) const {
  require(!deadline.expired(), ErrorKind::deadline,
          "Trainer: worker {} waited {:.1f} s in round {} for the others to agree when to save, "
          "stop or lower the rate; look for one that hangs",
          records_.rank(), deadline.elapsed_s(), rounds);
}

bool RunAgreement::save_is_due(std::int64_t rounds) const {
  const auto lock = coordinator_->lock();
  return is_due(Request::save, rounds);
}

void RunAgreement::saved() {
  const auto lock = coordinator_->lock();
  saved_ = saves_.settled().number;
}

void RunAgreement::end(Stage stage, std::int64_t rounds) {
  const auto lock = coordinator_->lock();
  records_.end(stage, rounds);
}

void RunAgreement::note_next_epoch(NumberedRound epoch) {
  const auto lock = coordinator_->lock();
  records_.note_next_epoch(epoch);
}

NumberedRound RunAgreement::next_epoch(std::int64_t round) {
  const Deadline deadline(longest_news_of_epoch);
  auto lock = coordinator_->lock();
  while (records_.next_epoch().round < round && !deadline.expired()) coordinator_->wait(lock);
  return records_.next_epoch();
}

std::vector<int> RunAgreement::left() const {
  const auto lock = coordinator_->lock();
  return map_->workers_that([this](int rank) { return records_.has_left(rank); });
}

std::vector<int> RunAgreement::absent() const {
  const auto lock = coordinator_->lock();
  return map_->workers_that([this](int rank) {
    return !map_->takes_part(rank) || records_.has_left(rank) || records_.is_given_up(rank) ||
           is_silent(rank);
  });
}

bool RunAgreement::has_ended_before(std::int64_t round) const {
  const auto lock = coordinator_->lock();
  if (!options_.exact || stops_.proposed() > 0) return false;
  return !map_->workers_that([&](int rank) {
                return map_->takes_part(rank) && records_.has_ended(rank) &&
                       records_.rounds_of_ended(rank) < round;
              })
              .empty();
}

std::vector<int> RunAgreement::given_up() const {
  const auto lock = coordinator_->lock();
  return map_->workers_that([this](int rank) { return records_.is_given_up(rank); });
}

/// A worker that takes part, has not left and is not given up has not come to that step.
bool RunAgreement::lacks(int rank, Step step) const {
  if (!records_.takes_part(rank) || records_.is_given_up(rank) || records_.has_left(rank))
    return false;
  if (step == Step::end) return records_.is_running(rank);
  if (step == Step::conclude) return !records_.has(rank, Mark::concluded);
  return !records_.has(rank, Mark::saved) && !records_.has(rank, Mark::unsaved);
}

/// All but those that are given up and those that are silent.
bool RunAgreement::all_have(Step step) const {
  for (int rank = 0; rank < records_.size(); ++rank)
    if (lacks(rank, step) && !is_silent(rank)) return false;
  return true;
}

/// Gives up those that have not. The launcher knows of a death at once, this worker only when a
/// worker has long been silent.
void RunAgreement::await(Step step, std::unique_lock<std::mutex>& lock) {
  const Deadline deadline(options_.deadline);
  const auto all_have = [&] {
    for (const int rank : coordinator_->died()) records_.give_up(rank);
    return this->all_have(step);
  };
  while (!all_have() && !deadline.expired()) coordinator_->wait(lock);
  for (int rank = 0; rank < records_.size(); ++rank)
    if (lacks(rank, step)) records_.give_up(rank);
}

bool RunAgreement::conclude(const std::vector<int>& lost) {
  auto lock = coordinator_->lock();
  for (const int worker : lost) {
    if (const int rank = map_->holder(worker); rank != nobody) records_.give_up(rank);
  }
  await(Step::end, lock);
  records_.mark(Mark::concluded);
  await(Step::conclude, lock);
  return records_.any_has_come_to(Stage::stopped);
}

std::optional<int> RunAgreement::report(bool saved) {
  auto lock = coordinator_->lock();
  records_.mark(saved ? Mark::saved : Mark::unsaved);
  await(Step::report, lock);
  const auto unsaved =
      map_->workers_that([this](int rank) { return records_.has(rank, Mark::unsaved); });
  return unsaved.empty() ? std::nullopt : std::optional(unsaved.front());
}

}  // namespace fast::membership
