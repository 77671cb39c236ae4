// Which workers were there when this worker last met them.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fast::worker {

class Presence {
 public:
  /// At first all workers are taken to be there, whoever they are.
  explicit Presence(int workers) : met_(static_cast<std::size_t>(workers), anyone) {}

  bool is_absent(int worker) const { return !met_[static_cast<std::size_t>(worker)]; }
  /// `rank` is there for that worker; none: it is absent. True when the worker has left or come
  /// back since it was noted last, or when another rank is in its place.
  bool note(int worker, std::optional<int> rank) {
    const auto before = std::exchange(met_[static_cast<std::size_t>(worker)], rank);
    return before != rank && !(before == anyone && rank);
  }

 private:
  static constexpr int anyone = -1;
  std::vector<std::optional<int>> met_;
};

}  // namespace fast::worker
