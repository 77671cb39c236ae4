// Keeps the workers of a run balanced: measures this worker's speed, and divides batches anew when
// the workers have agreed on other shares.
#pragma once

#include <fast/train/safetensors.hpp>

#include <cstddef>
#include <optional>
#include <vector>

#include "train/balance/share_agreement.hpp"
#include "train/balance/shares.hpp"
#include "train/run/replica.hpp"
#include "train/run/training_batches.hpp"
#include "train/run/training_setup.hpp"

namespace fast::train {

// How long a worker takes for a sample.

/// The median over the first rounds: a pause in some of them does not count.
class SpeedMeter {
 public:
  explicit SpeedMeter(std::size_t rounds) : rounds_(rounds) {}

  /// A round that has computed for so long, waits for other workers left out.
  void add(double seconds, std::size_t samples);
  bool is_full() const { return of_rounds_.size() >= rounds_; }
  double seconds_per_sample() const;  ///< 0 before the first round
  void restart() { of_rounds_.clear(); }

 private:
  std::size_t rounds_;
  std::vector<double> of_rounds_;  ///< seconds per sample
};

class Balancer {
 public:
  /// Gives batches and steps the plan's shares.
  Balancer(const RunPlan& plan, TrainingBatches& batches, Replica& replica);

  /// Before the loop. Collective if speeds are measured.
  void start();
  /// Between epochs. If speeds are measured, a worker may wait here for others to measure theirs.
  /// `in_midst`: a resumed run goes on in the midst of it.
  void begin_epoch(int epoch, bool in_midst);
  /// After a round of `epoch`; `load_s`: the time in which its batch was made.
  void note_round(int epoch, double load_s, std::size_t samples);

  /// For a checkpoint's file.
  Metadata to_metadata() const;
  /// Notes measured shares of a checkpoint's file, for start(). Those of another number of workers
  /// or of another batch size do not count, nor do those of a file without shares.
  void take_shares(const Metadata& metadata);

  const Shares& shares() const { return shares_; }

 private:
  void apply(Shares shares);
  void take_newest_saved();
  void say(const Shares& shares, int epoch, const char* why) const;
  bool measures() const { return plan_.options.balance.kind == Balance::Kind::measured; }

  const RunPlan& plan_;
  TrainingBatches& batches_;
  Replica& replica_;
  Shares shares_;
  SpeedMeter meter_;
  std::optional<ShareAgreement> agreement_;  ///< empty before start(), and unless measured
  bool has_begun_ = false;                   ///< an epoch
  bool resumed_in_midst_ = false;            ///< of the epoch that is to end
  std::string saved_;                        ///< epoch and shares of this worker's file, or empty
};

}  // namespace fast::train
