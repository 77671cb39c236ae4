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

  /// Looks at everybody, unless that was done a moment ago. True when who is silent has changed.
  bool look();
  /// Suspects that have not finished.
  const std::vector<int>& silent() const { return silent_; }

 private:
  std::shared_ptr<Peers> peers_;
  std::vector<int> watched_;
  std::vector<int> silent_;
  Clock::time_point looked_{};
};

}  // namespace fast::worker
