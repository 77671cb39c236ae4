// Messages whose times tell what a link can do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fast::exchange {

/// A message, and an empty one back. At most one flow has the same two ranks in this order.
struct Flow {
  std::int32_t from = 0, to = 0;
  std::uint64_t size_bytes = 1;
};

struct TrialTimes {
  /// By flow: seconds from the beginning of each message to its answer.
  std::vector<std::vector<double>> seconds;
  double total_s = 0;  ///< of the trial
};

class LinkTrials {
 public:
  virtual ~LinkTrials() = default;
  /// All flows at the same time; each `count` times, one message after the other. Throws
  /// Error(deadline) that names those who do not answer.
  virtual TrialTimes run(const std::vector<Flow>& flows, int count) = 0;
};

}  // namespace fast::exchange
