#include "membership/liveness.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/contains.hpp"
#include "core/numbers.hpp"

namespace fast::membership {
namespace {
constexpr std::size_t gaps_per_pause = 100;
}

void AdaptiveTimeout::add(std::uint64_t gap) {
  if (size_ == capacity) --counts_[gaps_[next_]];
  gaps_[next_] = static_cast<std::uint8_t>(std::min(gap, longest));
  ++counts_[gaps_[next_]];
  next_ = (next_ + 1) % capacity;
  size_ = std::min(size_ + 1, capacity);
}

/// The longest gap but for the pauses.
std::uint64_t AdaptiveTimeout::usual_gap() const {
  const std::size_t pauses = std::max<std::size_t>(size_ / gaps_per_pause, 1);
  std::uint64_t gap = longest;
  for (std::size_t longer = counts_[gap]; longer <= pauses && gap > 0;) longer += counts_[--gap];
  return gap;
}

std::uint64_t AdaptiveTimeout::threshold() const {
  return std::clamp(factor * usual_gap(), floor, ceiling);
}

namespace {

/// One more, because the first one may come immediately.
std::uint64_t one_more(std::uint64_t beats) { return saturating_sum<std::uint64_t>(beats, 1); }

}  // namespace

std::uint64_t beats_in(Seconds time) {
  return one_more(saturate<std::uint64_t>(std::ceil(time.count() * beats_per_second)));
}

FailureDetector::FailureDetector(int workers, std::optional<Seconds> suspect_after)
    : records_(static_cast<std::size_t>(workers)) {
  if (suspect_after) fixed_ = beats_in(*suspect_after);
}

void FailureDetector::observe(int worker, const PeerState& seen, std::uint64_t now,
                              Traffic traffic) {
  const std::lock_guard lock(mutex_);
  Record& record = records_[static_cast<std::size_t>(worker)];
  now = std::max(now, record.observed);  // threads may come here in another order than they looked
  const bool is_new = !std::exchange(record.known, true);
  const PeerState before = std::exchange(record.shown, seen);
  record.observed = now;
  record.in_message |= traffic == Traffic::message;
  if (before == seen && !is_new) return;
  // What is shown before the first heartbeat comes from the start of the job, not from its worker.
  if (before.heartbeat > 0) note_sign(record, now);
  record.moved = now;
  record.in_message = traffic == Traffic::message;
}

/// Signs of life within one heartbeat count as one.
void FailureDetector::note_sign(Record& record, std::uint64_t now) {
  const std::uint64_t gap = now - record.moved;
  if (gap == 0) return;
  (record.in_message ? record.message : record.heartbeats).add(gap);
}

std::uint64_t FailureDetector::threshold(const Record& record) const {
  if (fixed_) return *fixed_;
  const AdaptiveTimeout& gaps = record.in_message ? record.message : record.heartbeats;
  return gaps.has_enough() ? one_more(gaps.threshold()) : beats_in(suspect_after_at_first);
}

bool FailureDetector::is_suspect(int worker) const {
  const std::lock_guard lock(mutex_);
  return record(worker).observed - record(worker).moved > threshold(record(worker));
}

Seconds FailureDetector::silence(int worker) const {
  const std::lock_guard lock(mutex_);
  return seconds_of(record(worker).observed - record(worker).moved);
}

Seconds FailureDetector::suspect_after(int worker) const {
  const std::lock_guard lock(mutex_);
  return seconds_of(threshold(record(worker)));
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

Liveness::Liveness(RecordBoard board, std::size_t beat)
    : board_(std::move(board)), beat_(beat), signs_(static_cast<std::size_t>(board_.size())) {}

void Liveness::look(double elapsed_s, const std::vector<int>& died) {
  time_s_ += elapsed_s;
  died_ = died;
  look_again();
}

void Liveness::look_again() {
  for (int rank = 0; rank < board_.size(); ++rank) {
    const std::uint64_t beat = board_.read(rank, beat_);
    Sign& sign = signs_[static_cast<std::size_t>(rank)];
    if (beat != sign.beat) sign = {beat, time_s_};
  }
}

bool Liveness::is_silent(int rank, double after_s) const {
  return rank != board_.rank() && time_s_ - signs_[static_cast<std::size_t>(rank)].at_s > after_s;
}

bool Liveness::has_died(int rank) const { return contains(died_, rank); }

}  // namespace fast::membership
