// When each worker published, for the last rounds.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
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
  /// Of rounds that are no longer kept: long ago.
  double at(std::int64_t round, int worker) const {
    if (round < first_) return -std::numeric_limits<double>::infinity();
    return rounds_[static_cast<std::size_t>(round - first_)][static_cast<std::size_t>(worker)];
  }

 private:
  std::int64_t kept_, first_ = 0;
  std::deque<std::vector<double>> rounds_;
};

}  // namespace fast::simulation
