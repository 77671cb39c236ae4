// Which workers of this host are gone, as far as is known.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/peers.hpp>

#include <memory>
#include <vector>

namespace fast::worker {

class Census {
 public:
  /// Watches `watched`, which Peers::peer() can look at without waiting.
  Census(std::shared_ptr<Peers> peers, std::vector<int> watched);

  /// False when everybody was looked at a moment ago.
  bool is_due() const { return Clock::now() - looked_ >= period; }
  /// Looks at everybody. True when who is silent or has left has changed.
  bool look();
  /// Suspects that have not finished or left.
  const std::vector<int>& silent() const { return silent_; }
  /// By Worker::leave().
  const std::vector<int>& left() const { return left_; }

 private:
  static constexpr Seconds period{0.05};
  std::shared_ptr<Peers> peers_;
  std::vector<int> watched_;
  std::vector<int> silent_, left_;
  Clock::time_point looked_{};
};

}  // namespace fast::worker
