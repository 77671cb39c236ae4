// The round of rules that only average, where messages are the weights as they are. Payloads that
// are still arriving from other hosts are averaged part by part.
#pragma once

#include <fast/exchange/exchange.hpp>
#include <fast/mixing/weights.hpp>
#include <vector>

#include "combine/model_memory.hpp"

namespace fast::combine {

class PlainAverage {
 public:
  /// Counters in seconds. run() adds to them.
  struct Times {
    double& wait_s;
    double& mix_s;
  };
  /// Keeps references to both.
  PlainAverage(Exchange& exchange, const ModelMemory& memory)
      : exchange_(exchange), memory_(memory) {}

  /// True for models of f32 and f64 parameters only.
  static bool fits(const ParameterLayout& layout);

  /// Computes x_i + Σ_j W_ij (m_j - m_i) over the neighbors that are present, into the model and
  /// into `next`. `row` has the weights W_ij in the order of the arrivals. Blocks until all
  /// payloads have come. False if one did not come or has changed meanwhile. Then the model is
  /// unchanged if any payload was still arriving.
  bool run(std::vector<Arrival>& arrivals, const MixingRow& row, const MutablePayload& next,
           const Times& times);
  /// False if `next` of the last run() has a value that is not finite.
  bool is_finite() const { return finite_; }

 private:
  void average_whole(const std::vector<Arrival>& arrivals, const MixingRow& row,
                     const MutablePayload& next);
  bool average_arriving(std::vector<Arrival>& arrivals, const MixingRow& row,
                        const MutablePayload& next, const Times& times);
  template <class T>
  bool average_parts(const Segment& segment, std::vector<Arrival>& arrivals, const MixingRow& row,
                     const MutablePayload& next, const Times& times);
  bool all_intact(const std::vector<Arrival>& arrivals) const;
  bool await(Arrival& arrival, std::size_t bytes, const Times& times);

  Exchange& exchange_;
  const ModelMemory& memory_;
  bool finite_ = true;
};

}  // namespace fast::combine
