// Which requests that a spare joins are under way.
#pragma once

#include <map>

namespace fastrun {

/// Each is passed on by one rank, which answers whether a spare shall join. Then one does.
class GrowthRequests {
 public:
  /// That rank is asked to pass one on.
  void ask(int rank) { ++unanswered_[rank]; }
  /// It has answered. A spare that shall join counts as under way until one joins.
  void answer(int rank, bool grows) {
    if (unanswered_[rank] > 0) --unanswered_[rank];
    if (grows) ++accepted_;
  }
  void join() {
    if (accepted_ > 0) --accepted_;
  }
  /// That rank has ended. Returns how many requests it has left without an answer; they are not
  /// under way any more.
  int end(int rank) {
    const auto found = unanswered_.find(rank);
    if (found == unanswered_.end()) return 0;
    const int left = found->second;
    unanswered_.erase(found);
    return left;
  }
  /// Spares that they need.
  int under_way() const {
    int sum = accepted_;
    for (const auto& [rank, count] : unanswered_) sum += count;
    return sum;
  }

 private:
  std::map<int, int> unanswered_;  ///< by rank
  int accepted_ = 0;
};

}  // namespace fastrun
