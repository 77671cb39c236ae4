// When each worker published, for the last rounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace fast::simulation {

class History {
 public:
  /// Keeps that many rounds.
  explicit History(std::int64_t kept) : kept_(kept) {}
  void push(std::vector<double> times) {
    rounds_.push_back(std::move(times));
    if (static_cast<std::int64_t>(rounds_.size()) <= kept_) return;
    rounds_.pop_front();
    ++first_;
  }
  std::int64_t newest() const { return first_ + static_cast<std::int64_t>(rounds_.size()) - 1; }
  /// A round that is no longer kept counts as published with the oldest one that is: an absent
  /// worker's rounds all count as published when it is back.
  double at(std::int64_t round, int worker) const {
    const std::int64_t kept = std::max(round, first_);
    return rounds_[static_cast<std::size_t>(kept - first_)][static_cast<std::size_t>(worker)];
  }

 private:
  std::int64_t kept_, first_ = 0;
  std::deque<std::vector<double>> rounds_;
};

}  // namespace fast::simulation
