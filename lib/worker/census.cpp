#include "worker/census.hpp"

namespace fast::worker {

bool Census::look(const std::vector<int>& workers) {
  looked_ = Clock::now();
  std::vector<int> silent, left;
  for (const int worker : workers) {
    const WorkerStatus status = peers_->peer(worker).status;
    if (status == WorkerStatus::left) left.push_back(worker);
    if (!has_ended(status) && peers_->is_suspect(worker)) silent.push_back(worker);
  }
  const bool changed = silent != silent_ || left != left_;
  silent_ = std::move(silent);
  left_ = std::move(left);
  return changed;
}

}  // namespace fast::worker
