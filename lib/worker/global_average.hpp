// Exact averages over all workers, for rules that need them.
#pragma once

#include <fast/core/memory.hpp>
#include <memory>

#include "worker/context.hpp"
#include "worker/publisher.hpp"

namespace fast::worker {

/// f32 and f64 models only: else Error(argument) at the first average.
class GlobalAverage {
 public:
  GlobalAverage(const Context& context, std::unique_ptr<Reducer> reducer);

  /// Collective. A round of a rule of Scope::everybody: it gets the average of all workers' steps.
  void combine(const algorithm::RoundInfo& info, Publisher& publisher);
  /// Collective. The weights become the average of all workers' weights.
  void average(const algorithm::RoundInfo& info, Publisher& publisher);

 private:
  const std::byte* average_of_weights(const std::byte* base);
  void average(const Segment& segment, const std::byte* base);

  Context worker_;
  std::unique_ptr<Reducer> reducer_;
  AlignedBuffer averaged_;
};

}  // namespace fast::worker
