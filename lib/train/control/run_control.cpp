#include "train/control/run_control.hpp"

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>

namespace fast::train {
namespace {

constexpr auto quiet_period = std::chrono::milliseconds(100);
constexpr auto busy_period = std::chrono::milliseconds(10);
/// A worker that was suspended counts no more than this for that time.
constexpr Seconds longest_tick{0.2};
constexpr Seconds last_moment{2};
/// Within this time news reach all workers of other hosts.
constexpr Seconds for_notes{1};

}  // namespace

RunControl::RunControl(const Group& group, Options options)
    : group_(group),
      options_(std::move(options)),
      region_(group_.allocate(sizeof(AgreementRecord), Deadline(options_.deadline))),
      news_(group_, Deadline(options_.deadline)),
      agreement_(AgreementRecords(records(), group_.rank()), options_.exact,
                 silent_after().count()) {
  thread_ = std::thread([this] { run(); });
}

RunControl::~RunControl() {
  {
    std::unique_lock lock(mutex_);
    const bool ended = agreement_.all_have_ended(lost_) && !std::uncaught_exceptions();
    if (news_.has_other_hosts() && ended)
      changed_.wait_for(lock, last_moment, [&] { return agreement_.all_have_concluded(lost_); });
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Seconds RunControl::silent_after() const {
  return options_.silent_after + (news_.has_other_hosts() ? for_notes : Seconds(0));
}

/// The memory is zero at first, and so are valid records.
std::vector<AgreementRecord*> RunControl::records() const {
  std::vector<AgreementRecord*> all;
  for (std::byte* part : region_.parts) all.push_back(reinterpret_cast<AgreementRecord*>(part));
  return all;
}

void RunControl::run() {
  auto last = Clock::now();
  for (bool goes_on = true; goes_on;) {
    look_for_stop();
    receive_news();
    const auto now = Clock::now();
    tick(std::min(Seconds(now - last), longest_tick));
    last = now;
    news_.send();
    goes_on = rest();
  }
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

void RunControl::tick(Seconds elapsed) {
  {
    const std::lock_guard lock(mutex_);
    agreement_.tick(elapsed.count());
    agreement_.records().copy_to(news_.words());
  }
  changed_.notify_all();
}

/// False when the thread shall end.
bool RunControl::rest() {
  std::unique_lock lock(mutex_);
  const bool hurry = agreement_.is_busy() || agreement_.all_have_ended(lost_);
  changed_.wait_for(lock, hurry ? busy_period : quiet_period, [&] { return quit_; });
  return !quit_;
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
    changed_.wait_for(lock, quiet_period);
  }
}

void RunControl::saved() {
  const std::lock_guard lock(mutex_);
  agreement_.saved();
}

std::int64_t RunControl::round_of(Request what) const {
  const std::lock_guard lock(mutex_);
  return agreement_.round_of(what);
}

void RunControl::end(Stage stage, std::int64_t rounds) {
  const std::lock_guard lock(mutex_);
  agreement_.records().end(stage, rounds);
}

bool RunControl::conclude(const std::vector<int>& lost) {
  const Deadline deadline(options_.deadline);
  std::unique_lock lock(mutex_);
  lost_ = lost;
  while (!agreement_.all_have_ended(lost_) && !deadline.expired())
    changed_.wait_for(lock, quiet_period);
  agreement_.records().mark(Mark::concluded);
  return agreement_.records().any_was_stopped();
}

std::optional<int> RunControl::report(bool saved) {
  const Deadline deadline(options_.deadline);
  std::unique_lock lock(mutex_);
  agreement_.records().mark(saved ? Mark::saved : Mark::unsaved);
  while (!agreement_.all_have_reported(lost_) && !deadline.expired())
    changed_.wait_for(lock, quiet_period);
  for (int worker = 0; worker < group_.size(); ++worker)
    if (agreement_.records().has(static_cast<std::size_t>(worker), Mark::unsaved)) return worker;
  return std::nullopt;
}

}  // namespace fast::train
