// The average of payloads that are still arriving from other hosts, part by part.
#pragma once

#include <fast/core/layout.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/mixing/weights.hpp>
#include <vector>

namespace fast::combine {

class StreamingAverage {
 public:
  /// Seconds, added to.
  struct Times {
    double& wait_s;
    double& mix_s;
  };
  /// Refers to both.
  StreamingAverage(Exchange& exchange, const ParameterLayout& layout)
      : exchange_(exchange), layout_(layout) {}

  /// True for models of f32 and f64 parameters only.
  static bool fits(const ParameterLayout& layout);

  /// x_i + Σ_j W_ij (m_j - m_i) of the neighbors that are present, for messages that are weights as
  /// they are (codec identity). Writes to the next slot and then to the model's memory. False when
  /// nothing is on its way, or when what was did not come: the model is as it was then. Blocks
  /// until all has come. `row` is of the arrivals.
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
