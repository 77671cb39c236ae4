#include "train/control/run_control.hpp"

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/wait_check.hpp>
#include <thread>

#include "exchange/group_impl.hpp"
#include "exchange/seats/seat_keeper.hpp"

namespace fast::train {
namespace {

constexpr auto look_again = std::chrono::milliseconds(100);
/// Within this time news reach all workers of other hosts.
constexpr Seconds for_notes{1};

/// Null without spares.
std::shared_ptr<const exchange::SeatTable> seat_table(const Group& group) {
  const auto seats = GroupImpl::of(group).seats();
  return seats ? std::shared_ptr<const exchange::SeatTable>(seats, &seats->table()) : nullptr;
}

/// The memory is zero at first, and so are valid records.
AgreementRecords records_in(const Region& region, const Group& group,
                            const std::shared_ptr<exchange::SeatKeeper>& seats) {
  std::vector<AgreementRecord*> all;
  for (std::byte* part : region.parts) all.push_back(reinterpret_cast<AgreementRecord*>(part));
  AgreementRecords::TakesPart takes_part;
  if (seats) {
    takes_part = [seats](std::size_t rank) { return seats->has_begun(static_cast<int>(rank)); };
  }
  return {std::move(all), group.rank(), std::move(takes_part)};
}

Seconds silent_after(const RunControl::Options& options, bool has_other_hosts) {
  return options.silent_after + (has_other_hosts ? for_notes : Seconds(0));
}

}  // namespace

RunControl::RunControl(const Group& group, Options options)
    : group_(group.everyone()),
      ranks_(seat_table(group), group_.size()),
      options_(std::move(options)),
      region_(group_.allocate(sizeof(AgreementRecord), Deadline(options_.deadline))),
      news_(group_, AgreementRecord::words, Deadline(options_.deadline)),
      agreement_(records_in(region_, group_, GroupImpl::of(group).seats()), options_.exact,
                 silent_after(options_, news_.has_other_hosts()).count()),
      ticker_([this](Seconds elapsed) { return tick(elapsed); }) {}

void RunControl::join(std::int64_t rounds) {
  const std::lock_guard lock(mutex_);
  agreement_.join(rounds);
}

void RunControl::note_newcomers(std::int64_t grown_in, std::int64_t begin) {
  const std::lock_guard lock(mutex_);
  agreement_.note_newcomers(grown_in, begin);
}

/// True while the workers agree on something, or end.
bool RunControl::tick(Seconds elapsed) {
  look_for_stop();
  receive_news();
  bool hurry = false;
  {
    const std::lock_guard lock(mutex_);
    agreement_.tick(elapsed.count());
    copy(agreement_.records(), news_.words());
    hurry = agreement_.is_busy() || agreement_.all_have(Step::end);
  }
  changed_.notify_all();
  news_.send();
  return hurry;
}

void RunControl::look_for_stop() {
  if (asked_ || !options_.stop_requested || !options_.stop_requested()) return;
  asked_ = true;
  const std::lock_guard lock(mutex_);
  agreement_.request(Request::stop);
}

void RunControl::receive_news() {
  while (news_.receive()) {
    const std::lock_guard lock(mutex_);
    train::take_over(agreement_.records(), news_.words(), news_.here());
  }
}

void RunControl::wait(std::int64_t rounds) {
  const std::lock_guard lock(mutex_);
  agreement_.wait(rounds);
}

void RunControl::request_save() {
  const std::lock_guard lock(mutex_);
  agreement_.request(Request::save);
}

Turn RunControl::take_turn(std::int64_t rounds, std::int64_t ahead) {
  const Deadline deadline(options_.deadline);
  std::unique_lock lock(mutex_);
  for (;;) {
    const Turn turn = agreement_.take_turn(rounds, ahead);
    if (turn != Turn::hold) return turn;
    require(!deadline.expired(), ErrorKind::deadline,
            "Trainer: worker {} waited {:.1f} s in round {} for the others to agree when to save "
            "or stop; look for one that hangs",
            group_.rank(), deadline.elapsed_s(), rounds);
    check_wait(lock);
    changed_.wait_for(lock, look_again);
  }
}

void RunControl::saved() {
  const std::lock_guard lock(mutex_);
  agreement_.saved();
}

bool RunControl::save_is_due(std::int64_t rounds) const {
  const std::lock_guard lock(mutex_);
  return agreement_.save_is_due(rounds);
}

std::int64_t RunControl::round_of(Request what) const {
  const std::lock_guard lock(mutex_);
  return agreement_.round_of(what);
}

bool RunControl::stop_is_wanted() const {
  const std::lock_guard lock(mutex_);
  return agreement_.records().newest_wanted(Request::stop) > 0;
}

bool RunControl::stop_is_settled() const {
  const std::lock_guard lock(mutex_);
  return agreement_.records().newest_settled(Request::stop).number > 0;
}

void RunControl::end(Stage stage, std::int64_t rounds) {
  const std::lock_guard lock(mutex_);
  agreement_.records().end(stage, rounds);
}

void RunControl::note_next_epoch(NumberedRound epoch) {
  const std::lock_guard lock(mutex_);
  agreement_.records().note_next_epoch(epoch);
}

NumberedRound RunControl::next_epoch(std::int64_t round) {
  const Deadline deadline(2 * for_notes);
  std::unique_lock lock(mutex_);
  while (agreement_.records().next_epoch().round < round && !deadline.expired()) {
    check_wait(lock);
    changed_.wait_for(lock, look_again);
  }
  return agreement_.records().next_epoch();
}

std::vector<int> RunControl::left() const {
  const std::lock_guard lock(mutex_);
  return ranks_.workers_that(
      [this](std::size_t rank) { return agreement_.records().has_left(rank); });
}

std::vector<int> RunControl::absent() const {
  const std::lock_guard lock(mutex_);
  return ranks_.workers_that([this](std::size_t rank) {
    const AgreementRecords& records = agreement_.records();
    return !ranks_.is_on_seat(rank) || records.has_left(rank) || records.is_given_up(rank) ||
           agreement_.is_silent(rank);
  });
}

std::vector<int> RunControl::given_up() const {
  const std::lock_guard lock(mutex_);
  return ranks_.workers_that(
      [this](std::size_t rank) { return agreement_.records().is_given_up(rank); });
}

void RunControl::spread_news() {
  if (news_.has_other_hosts()) std::this_thread::sleep_for(for_notes);
}

/// The launcher knows of a death at once, this worker only when a worker has long been silent.
void RunControl::await(Step step, std::unique_lock<std::mutex>& lock) {
  const Deadline deadline(options_.deadline);
  const auto all_have = [&] {
    for (const int rank : group_.died())
      agreement_.records().give_up(static_cast<std::size_t>(rank));
    return agreement_.all_have(step);
  };
  while (!all_have() && !deadline.expired()) {
    check_wait(lock);
    changed_.wait_for(lock, look_again);
  }
  agreement_.give_up_without(step);
}

bool RunControl::conclude(const std::vector<int>& lost) {
  std::unique_lock lock(mutex_);
  for (const int worker : lost) {
    if (const auto rank = ranks_.rank_of(worker)) agreement_.records().give_up(*rank);
  }
  await(Step::end, lock);
  agreement_.records().mark(Mark::concluded);
  await(Step::conclude, lock);
  return agreement_.records().any_was_stopped();
}

std::optional<int> RunControl::report(bool saved) {
  std::unique_lock lock(mutex_);
  agreement_.records().mark(saved ? Mark::saved : Mark::unsaved);
  await(Step::report, lock);
  const auto unsaved = ranks_.workers_that(
      [this](std::size_t rank) { return agreement_.records().has(rank, Mark::unsaved); });
  return unsaved.empty() ? std::nullopt : std::optional(unsaved.front());
}

}  // namespace fast::train
