// Samples of a set by their shard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fast::data {

struct ShardPosition {
  std::size_t shard, sample;  ///< the latter counts from the beginning of the shard
};

class ShardPositions {
 public:
  /// The next shard has so many samples.
  void add(std::size_t samples) {
    first_.push_back(samples_);
    samples_ += samples;
  }
  std::size_t samples() const { return samples_; }
  /// `sample` counts from the beginning of the set.
  ShardPosition of(std::size_t sample) const {
    const auto next = std::upper_bound(first_.begin(), first_.end(), sample);
    const auto shard = static_cast<std::size_t>(next - first_.begin()) - 1;
    return {shard, sample - first_[shard]};
  }

 private:
  std::vector<std::size_t> first_;  ///< sample of each shard
  std::size_t samples_ = 0;
};

}  // namespace fast::data
