#include "worker/census.hpp"

#include <utility>

namespace fast::worker {
Census::Census(std::shared_ptr<Peers> peers, std::vector<int> watched)
    : peers_(std::move(peers)), watched_(std::move(watched)) {}

bool Census::look() {
  looked_ = Clock::now();
  std::vector<int> silent;
  for (const int worker : watched_) {
    const bool left = peers_->peer(worker).status == WorkerStatus::finished;
    if (!left && peers_->is_suspect(worker)) silent.push_back(worker);
  }
  const bool changed = silent != silent_;
  silent_ = std::move(silent);
  return changed;
}

}  // namespace fast::worker
