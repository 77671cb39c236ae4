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
  enum class Change { none, left, came, other };  ///< other: another rank is in its place
  /// `rank` is there for that worker; none: it is absent. What has changed since it was noted last.
  Change note(int worker, std::optional<int> rank) {
    const auto before = std::exchange(met_[static_cast<std::size_t>(worker)], rank);
    if (before == rank || (before == anyone && rank)) return Change::none;
    if (!rank) return Change::left;
    return before ? Change::other : Change::came;
  }

 private:
  static constexpr int anyone = -1;
  std::vector<std::optional<int>> met_;
};

}  // namespace fast::worker
