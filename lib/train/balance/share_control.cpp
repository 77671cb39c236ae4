#include "train/balance/share_control.hpp"

#include <fast/core/error.hpp>
#include <utility>

namespace fast::train {
namespace {

constexpr auto look_for_shares = std::chrono::milliseconds(100);
/// Within this time news reach all workers of other hosts.
constexpr Seconds for_share_notes{1};

}  // namespace

ShareControl::ShareControl(const Group& group, Shares first, const Options& options)
    : group_(group),
      options_(options),
      region_(group_.allocate(ShareRecords::words(group_.size()) * sizeof(ShareRecords::Word),
                              Deadline(options_.deadline))),
      news_(group_, ShareRecords::words(group_.size()), Deadline(options_.deadline)),
      agreement_(records(), std::move(first), options_.batch_size,
                 (options_.silent_after + (news_.has_other_hosts() ? for_share_notes : Seconds(0)))
                     .count()),
      ticker_([this](Seconds elapsed) { return tick(elapsed); }) {}

/// The memory is zero at first, and so are valid records.
ShareRecords ShareControl::records() const {
  std::vector<ShareRecords::Word*> all;
  for (std::byte* part : region_.parts) all.push_back(reinterpret_cast<ShareRecords::Word*>(part));
  return {std::move(all), group_.rank()};
}

bool ShareControl::tick(Seconds elapsed) {
  while (news_.receive()) {
    const std::lock_guard lock(mutex_);
    agreement_.records().take_over(news_.words(), news_.here());
  }
  bool hurry = false;
  {
    const std::lock_guard lock(mutex_);
    agreement_.tick(elapsed.count());
    agreement_.records().copy_to(news_.words());
    hurry = agreement_.is_busy();
  }
  changed_.notify_all();
  news_.send();
  return hurry;
}

bool ShareControl::has_measured() const {
  const std::lock_guard lock(mutex_);
  return agreement_.has_measured();
}

void ShareControl::measured(int epoch, double seconds_per_sample) {
  const std::lock_guard lock(mutex_);
  agreement_.measured(epoch, seconds_per_sample);
  agreement_.tick(0);  // this worker may be the last one
}

void ShareControl::count_round() {
  const std::lock_guard lock(mutex_);
  agreement_.records().count_round();
}

std::optional<Shares> ShareControl::begin_epoch(int epoch) {
  std::optional<Deadline> deadline(options_.deadline);
  std::unique_lock lock(mutex_);
  std::uint64_t rounds = agreement_.records().rounds();
  while (!agreement_.may_begin(epoch)) {
    if (std::exchange(rounds, agreement_.records().rounds()) != rounds)
      deadline.emplace(options_.deadline);
    require(!deadline->expired(), ErrorKind::deadline,
            "Trainer: worker {} waited {:.1f} s before epoch {} for the others to measure their "
            "speed, and none of them made a round; look for one that hangs",
            group_.rank(), deadline->elapsed_s(), epoch + 1);
    changed_.wait_for(lock, look_for_shares);
  }
  return agreement_.take(epoch);
}

void ShareControl::end(ShareRecords::Stage stage) {
  const std::lock_guard lock(mutex_);
  agreement_.records().end(stage);
}

}  // namespace fast::train
