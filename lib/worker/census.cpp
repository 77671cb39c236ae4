#include "worker/census.hpp"

#include <utility>

namespace fast::worker {
namespace {

constexpr Seconds look_period{0.05};

}  // namespace

Census::Census(std::shared_ptr<Peers> peers, std::vector<int> watched)
    : peers_(std::move(peers)), watched_(std::move(watched)) {}

bool Census::look() {
  const auto clock = Clock::now();
  if (clock - looked_ < look_period) return false;
  looked_ = clock;
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
