#include "train/control/run_control.hpp"

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>

namespace fast::train {
namespace {

constexpr auto quiet_period = std::chrono::milliseconds(100);
constexpr auto busy_period = std::chrono::milliseconds(10);
constexpr Seconds longest_tick{
    0.2};  ///< what a worker that was stopped itself counts for that time
constexpr Seconds last_moment{2};
constexpr Seconds for_notes{1};  ///< in which workers of other hosts have heard of each other

std::vector<bool> on_this_host(const Group& group) {
  const std::vector<int> hosts = group.hosts();
  std::vector<bool> here;
  for (const int host : hosts)
    here.push_back(host == hosts[static_cast<std::size_t>(group.rank())]);
  return here;
}

}  // namespace

RunControl::RunControl(const Group& group, Options options)
    : group_(group),
      options_(std::move(options)),
      region_(group_.allocate(sizeof(AgreementRecord), Deadline(options_.deadline))),
      here_(on_this_host(group_)),
      notes_(
          group_.open_notes(region_.parts.size() * AgreementRecord::words * sizeof(std::uint64_t),
                            Deadline(options_.deadline))),
      note_(region_.parts.size() * AgreementRecord::words),
      random_(static_cast<unsigned>(group_.rank()) + 1),
      agreement_(AgreementRecords(records(), group_.rank()), options_.exact,
                 (options_.silent_after + (notes_ ? for_notes : Seconds(0))).count()) {
  for (int worker = 0; worker < group_.size(); ++worker)
    if (!here_[static_cast<std::size_t>(worker)]) elsewhere_.push_back(worker);
  thread_ = std::thread([this] { run(); });
}

RunControl::~RunControl() {
  {
    std::unique_lock lock(mutex_);
    const bool ended = agreement_.all_have_ended(lost_) && !std::uncaught_exceptions();
    if (notes_ && ended)
      changed_.wait_for(lock, last_moment, [&] { return agreement_.all_have_concluded(lost_); });
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

/// Zeros are a record of before anything has happened.
std::vector<AgreementRecord*> RunControl::records() const {
  std::vector<AgreementRecord*> all;
  for (std::byte* part : region_.parts) all.push_back(reinterpret_cast<AgreementRecord*>(part));
  return all;
}

void RunControl::run() {
  auto last = Clock::now();
  for (bool goes_on = true; goes_on;) {
    look_for_stop();
    hear();
    const auto now = Clock::now();
    tick(std::min(Seconds(now - last), longest_tick));
    last = now;
    tell();
    goes_on = rest();
  }
}

void RunControl::look_for_stop() {
  if (asked_ || !options_.stop_requested || !options_.stop_requested()) return;
  asked_ = true;
  const std::lock_guard lock(mutex_);
  agreement_.request(Request::stop);
}

void RunControl::hear() {
  if (!notes_) return;
  while (notes_->receive(std::as_writable_bytes(std::span(note_)))) {
    const std::lock_guard lock(mutex_);
    agreement_.records().take_over(note_, here_);
  }
}

void RunControl::tick(Seconds elapsed) {
  {
    const std::lock_guard lock(mutex_);
    agreement_.tick(elapsed.count());
    if (notes_) agreement_.records().copy_to(note_);
  }
  changed_.notify_all();
}

/// One worker at random: what one knows, all do after about as many ticks as a rumor takes.
void RunControl::tell() {
  if (notes_)
    notes_->send(elsewhere_[random_() % elsewhere_.size()], std::as_bytes(std::span(note_)));
}

/// False when this is the end.
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
