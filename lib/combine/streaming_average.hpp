// The average of payloads that are still arriving from other hosts, part by part.
#pragma once

#include <fast/core/layout.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/mixing/weights.hpp>
#include <vector>

namespace fast::combine {

class StreamingAverage {
 public:
  /// Counters in seconds. run() adds to them.
  struct Times {
    double& wait_s;
    double& mix_s;
  };
  /// Keeps references to both.
  StreamingAverage(Exchange& exchange, const ParameterLayout& layout)
      : exchange_(exchange), layout_(layout) {}

  /// True for models of f32 and f64 parameters only.
  static bool fits(const ParameterLayout& layout);

  /// Computes x_i + Σ_j W_ij (m_j - m_i) over the neighbors that are present. Their messages are
  /// the weights (codec identity). `row` has the weights W_ij in the order of the arrivals. Blocks
  /// until all payloads have come. The result goes to the next slot first, and then to the model's
  /// memory. False if nothing is on its way, or if a payload did not come: the model is unchanged
  /// then.
  bool run(std::vector<Arrival>& arrivals, const MixingRow& row, const Times& times);

 private:
  template <class T>
  bool average(const Segment& segment, std::vector<Arrival>& arrivals, const MixingRow& row,
               const MutablePayload& next, const Times& times);
  bool await(Arrival& arrival, std::size_t bytes, const Times& times);

  Exchange& exchange_;
  const ParameterLayout& layout_;
};

}  // namespace fast::combine
