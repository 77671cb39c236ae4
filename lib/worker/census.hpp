// Which workers of this host live, by their heartbeats.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/peers.hpp>

#include <memory>
#include <vector>

namespace fast::worker {

/// Heartbeats in such a time.
std::uint64_t beats_in(Seconds time);
inline constexpr double beats_per_second = 10;

class Census {
 public:
  /// Watches `watched`, which Peers::peer() can look at without waiting. Time is counted in beats
  /// of worker `self`, so that nobody seems silent to a worker that was stopped itself.
  Census(std::shared_ptr<const Peers> peers, int self, std::vector<int> watched,
         Seconds silent_after);

  /// Looks at everybody, unless that was done a moment ago. True when who is silent has changed.
  bool look();
  /// Those whose heartbeat has stood still for so long without their having finished.
  const std::vector<int>& silent() const { return silent_; }

 private:
  struct Watch {
    int worker = 0;
    std::uint64_t heartbeat = 0;
    std::uint64_t moved = 0;  ///< in beats
  };
  std::shared_ptr<const Peers> peers_;
  int self_;
  std::uint64_t silent_after_;  ///< beats
  std::vector<Watch> watches_;
  std::vector<int> silent_;
  Clock::time_point looked_{};
};

}  // namespace fast::worker
