// Which workers of this host are gone, as far as is known.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/peers.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace fast::worker {

class Census {
 public:
  explicit Census(std::shared_ptr<Peers> peers) : peers_(std::move(peers)) {}

  /// False when everybody was looked at a moment ago.
  bool is_due() const { return Clock::now() - looked_ >= period; }
  /// Looks at these, for whom Peers::peer() does not wait. True when who is silent or has left has
  /// changed.
  bool look(const std::vector<int>& workers);
  /// Suspects that have not finished or left.
  const std::vector<int>& silent() const { return silent_; }
  /// By Worker::leave().
  const std::vector<int>& left() const { return left_; }

 private:
  static constexpr Seconds period{0.05};
  std::shared_ptr<Peers> peers_;
  std::vector<int> silent_, left_;
  Clock::time_point looked_{};
};

}  // namespace fast::worker
