// How workers agree on shares while training continues, and any worker may be slow, suspended or
// dead.
//
// Divisions have numbers 1, 2, ... Events of division k:
//   1. measured() on each worker, in an epoch e in which division k - 1 is in force there: it says
//      how fast it is, and that it begins no epoch after e before division k is settled.
//   2. tick() on the lowest worker that is running and not silent: once all such workers have said
//      so, it settles the division. Division k is in force from the epoch after the largest e on.
//      Silent workers, those that have left, and those that are more than one division behind are
//      away in it.
//   3. may_begin() on each worker, before an epoch: the worker holds if it is the epoch after e and
//      division k is not settled.
//   4. take() on each worker, before an epoch: the division that comes into force there.
// All workers thus have the same shares in the same epoch of their own, whatever the staleness.
// Nobody settles once some worker has made its last epoch. When the lowest worker is silent, the
// next one settles. There may then be two divisions of one number, if both settle at once: some
// samples of an epoch are then used twice or not at all.
#pragma once

#include <cstdint>
#include <optional>

#include "train/balance/share_records.hpp"
#include "train/control/life_signs.hpp"

namespace fast::train {

/// One worker's part. Not for several threads at once.
class ShareAgreement {
 public:
  /// `first`: the shares before the first division, the same on all workers.
  ShareAgreement(ShareRecords records, Shares first, std::size_t batch_size, double silent_after_s);

  ShareRecords& records() { return records_; }

  /// This worker has measured for the next division, and waits for it.
  bool has_measured() const { return said_.number > taken_; }
  /// Once for each division. 0 seconds: this worker does not know its speed.
  void measured(int epoch, double seconds_per_sample);
  bool may_begin(int epoch) const;
  /// Empty: nothing new comes into force.
  std::optional<Shares> take(int epoch);
  /// `elapsed_s`: the time since the last tick, as far as this worker was running.
  void tick(double elapsed_s);
  /// Some division is under way: ticks should follow quickly.
  bool is_busy() const { return said_.number > records_.newest_settled().number; }

 private:
  void settle();
  std::optional<Speed> speed_of(std::size_t worker, std::uint64_t number) const;

  ShareRecords records_;
  Shares first_;
  std::size_t batch_size_;
  LifeSigns signs_;
  ShareRecords::Measured said_;  ///< by this worker, for the newest division
  std::uint64_t taken_ = 0;      ///< number of the division in force
};

}  // namespace fast::train
