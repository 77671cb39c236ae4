#include "exchange/failure_detector.hpp"

#include <cmath>
#include <utility>

namespace fast::exchange {

/// One more, because the first one may come immediately.
std::uint64_t beats_in(Seconds time) {
  return static_cast<std::uint64_t>(std::ceil(time.count() * beats_per_second)) + 1;
}

FailureDetector::FailureDetector(int workers, Seconds suspect_after)
    : suspect_after_(beats_in(suspect_after)), records_(static_cast<std::size_t>(workers)) {}

void FailureDetector::observe(int worker, const PeerState& seen, std::uint64_t now) {
  const std::lock_guard lock(mutex_);
  Record& record = records_[static_cast<std::size_t>(worker)];
  const bool is_new = !std::exchange(record.known, true);
  if (std::exchange(record.shown, seen) != seen || is_new) record.moved = now;
  record.observed = now;
}

bool FailureDetector::is_suspect(int worker) const {
  const std::lock_guard lock(mutex_);
  return record(worker).observed - record(worker).moved > suspect_after_;
}

Seconds FailureDetector::silence(int worker) const {
  const std::lock_guard lock(mutex_);
  return seconds_of(record(worker).observed - record(worker).moved);
}

ProgressDeadline::ProgressDeadline(Seconds limit, const PeerState& own)
    : limit_(beats_in(limit)),
      began_(own.heartbeat),
      moved_(own.heartbeat),
      activity_(own.activity) {}

bool ProgressDeadline::expired(const PeerState& own) {
  if (std::exchange(activity_, own.activity) != own.activity) moved_ = own.heartbeat;
  return own.heartbeat - moved_ > limit_;
}

}  // namespace fast::exchange
