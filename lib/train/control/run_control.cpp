#include "train/control/run_control.hpp"

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <thread>

#include "exchange/group_impl.hpp"

namespace fast::train {
namespace {

constexpr auto look_again = std::chrono::milliseconds(100);
constexpr Seconds last_moment{2};
/// Within this time news reach all workers of other hosts.
constexpr Seconds for_notes{1};

}  // namespace

RunControl::RunControl(const Group& group, Options options)
    : seats_(GroupImpl::of(group).seats()),
      group_(group.everyone()),
      options_(std::move(options)),
      region_(group_.allocate(sizeof(AgreementRecord), Deadline(options_.deadline))),
      news_(group_, AgreementRecord::words, Deadline(options_.deadline)),
      agreement_(records(), options_.exact, silent_after().count()),
      ticker_([this](Seconds elapsed) { return tick(elapsed); }) {}

RunControl::~RunControl() {
  std::unique_lock lock(mutex_);
  const bool ended = agreement_.all_have_ended(lost_) && !std::uncaught_exceptions();
  if (news_.has_other_hosts() && ended)
    changed_.wait_for(lock, last_moment, [&] { return agreement_.all_have_concluded(lost_); });
}

Seconds RunControl::silent_after() const {
  return options_.silent_after + (news_.has_other_hosts() ? for_notes : Seconds(0));
}

/// The memory is zero at first, and so are valid records.
AgreementRecords RunControl::records() const {
  std::vector<AgreementRecord*> all;
  for (std::byte* part : region_.parts) all.push_back(reinterpret_cast<AgreementRecord*>(part));
  AgreementRecords::TakesPart takes_part;
  if (seats_) {
    takes_part = [seats = seats_](std::size_t rank) {
      return seats->has_begun(static_cast<int>(rank));
    };
  }
  return {std::move(all), group_.rank(), std::move(takes_part)};
}

std::vector<int> RunControl::ranks_of(const std::vector<int>& workers) const {
  std::vector<int> ranks = workers;
  if (seats_)
    std::transform(ranks.begin(), ranks.end(), ranks.begin(),
                   [this](int seat) { return seats_->table().holder(seat); });
  return ranks;
}

void RunControl::join(std::int64_t rounds) {
  const std::lock_guard lock(mutex_);
  agreement_.join(rounds);
}

/// True while the workers agree on something, or end.
bool RunControl::tick(Seconds elapsed) {
  look_for_stop();
  receive_news();
  bool hurry = false;
  {
    const std::lock_guard lock(mutex_);
    agreement_.tick(elapsed.count());
    agreement_.records().copy_to(news_.words());
    hurry = agreement_.is_busy() || agreement_.all_have_ended(lost_);
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
    agreement_.records().take_over(news_.words(), news_.here());
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
  while (agreement_.records().next_epoch().round < round && !deadline.expired())
    changed_.wait_for(lock, look_again);
  return agreement_.records().next_epoch();
}

std::vector<int> RunControl::left() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> left;
  const int workers = seats_ ? seats_->table().seats() : group_.size();
  for (int worker = 0; worker < workers; ++worker) {
    const int rank = seats_ ? seats_->table().holder(worker) : worker;
    if (agreement_.records().has_left(static_cast<std::size_t>(rank))) left.push_back(worker);
  }
  return left;
}

void RunControl::spread_news() {
  if (news_.has_other_hosts()) std::this_thread::sleep_for(for_notes);
}

bool RunControl::conclude(const std::vector<int>& lost) {
  const Deadline deadline(options_.deadline);
  std::unique_lock lock(mutex_);
  lost_ = ranks_of(lost);
  while (!agreement_.all_have_ended(lost_) && !deadline.expired())
    changed_.wait_for(lock, look_again);
  agreement_.records().mark(Mark::concluded);
  return agreement_.records().any_was_stopped();
}

std::optional<int> RunControl::report(bool saved) {
  const Deadline deadline(options_.deadline);
  std::unique_lock lock(mutex_);
  agreement_.records().mark(saved ? Mark::saved : Mark::unsaved);
  while (!agreement_.all_have_reported(lost_) && !deadline.expired())
    changed_.wait_for(lock, look_again);
  for (int worker = 0; worker < group_.size(); ++worker)
    if (agreement_.records().has(static_cast<std::size_t>(worker), Mark::unsaved)) return worker;
  return std::nullopt;
}

}  // namespace fast::train
