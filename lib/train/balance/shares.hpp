// How many samples of a round each worker takes.
#pragma once

#include <fast/data/sampler.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fast::train {

/// A value. The batches of all workers sum up to workers × batch size. A worker that is away takes
/// one sample, so that it has a place when it comes back, and its weight is not counted.
class Shares {
 public:
  static Shares even(int workers, std::size_t batch_size);
  /// By the largest remainder (Hamilton), with 1 sample at least; of equal remainders the lower
  /// worker's goes first. A speed of 0: the worker is away. Some speed is positive.
  static Shares in_proportion(std::span<const double> speeds, std::size_t batch_size);
  /// Batches by worker; 0: the worker is away.
  explicit Shares(std::vector<std::size_t> batches) : batches_(std::move(batches)) {}
  /// Of text(). Empty unless the text has so many batches with so many samples in all.
  static std::optional<Shares> from_text(std::string_view text, int workers,
                                         std::size_t batch_size);

  int workers() const { return static_cast<int>(batches_.size()); }
  const std::vector<std::size_t>& batches() const { return batches_; }  ///< 0: away
  bool is_away(int worker) const { return batches_[static_cast<std::size_t>(worker)] == 0; }
  std::string text() const;  ///< "110,55,27"

  data::RoundShare of(int worker) const;
  /// N b / B, with the workers that are there and their samples: the mean over them is 1.
  double scale(int worker) const;
  /// How long a round takes if samples take so long (0 or less: not known).
  double round_s(std::span<const double> seconds_per_sample) const;

  bool operator==(const Shares&) const = default;

 private:
  std::vector<std::size_t> batches_;
};

/// What is known of a worker's speed.
struct Speed {
  bool is_away = false;
  double seconds_per_sample = 0;  ///< 0: not known; then it is taken for as fast as its share says
};

/// The shares for these speeds, or `now` if the predicted time of a round would be shorter by 5 %
/// at most and the same workers are there. Also `now` if no speed is known, or nobody is there.
Shares rebalanced(const Shares& now, std::span<const Speed> speeds, std::size_t batch_size);

}  // namespace fast::train
