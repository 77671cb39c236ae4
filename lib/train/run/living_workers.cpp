#include "train/run/living_workers.hpp"

#include <algorithm>
#include <set>

namespace fast::train {

std::vector<int> gone_workers(const Replica& replica, const RunCheckpoint& checkpoint) {
  const Departures departed = replica.worker().departed();
  std::vector<int> gone = departed.lost;
  for (const auto& left : {departed.left, checkpoint.left()})
    gone.insert(gone.end(), left.begin(), left.end());
  return gone;
}

int LivingWorkers::count() {
  if (count_ > 0 && Clock::now() - counted_ < period) return count_;
  counted_ = Clock::now();
  const std::vector<int> gone = gone_workers(replica_, checkpoint_), absent = checkpoint_.absent();
  std::set<int> missing(gone.begin(), gone.end());
  missing.insert(absent.begin(), absent.end());
  missing.erase(group_.rank());
  count_ = std::max(1, group_.size() - static_cast<int>(missing.size()));
  return count_;
}

}  // namespace fast::train
