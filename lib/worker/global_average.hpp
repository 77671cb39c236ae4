// Exact averages over all workers, for rules that need them.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/exchange/group.hpp>
#include <fast/worker/stats.hpp>
#include <memory>

#include "combine/mixer.hpp"

namespace fast::worker {

class GlobalAverage {
 public:
  /// Collective. `mixer` lives longer than this.
  GlobalAverage(const Group& group, const ExchangeOptions& options, combine::Mixer& mixer);

  /// Collective. The average over all workers of the weights minus `base` (packed), if there is
  /// one. Valid until the next call. f32 and f64 models only: else Error(argument).
  const std::byte* of_weights(const std::byte* base, WorkerStats& stats);

 private:
  void average(const Segment& segment, const std::byte* base);

  combine::Mixer* mixer_;
  std::unique_ptr<Reducer> reducer_;
  AlignedBuffer averaged_;
  int workers_;
};

}  // namespace fast::worker
