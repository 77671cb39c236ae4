// Whom each worker reads in a round, one list after another.
#pragma once

#include <cstdint>
#include <fast/topology/topology.hpp>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace fast::simulation {

struct ReadLists {
  std::vector<std::size_t> first;  ///< of each worker, and the end
  std::vector<int> sources;
  std::span<const int> of(int worker) const {
    const auto at = static_cast<std::size_t>(worker);
    return std::span(sources).subspan(first[at], first[at + 1] - first[at]);
  }
};

/// The lists of a schedule. Remembers a period where it is short, and otherwise the last rounds.
class RoundReads {
 public:
  explicit RoundReads(Schedule schedule) : schedule_(std::move(schedule)) {}
  std::shared_ptr<const ReadLists> at(std::int64_t round);
  const Schedule& schedule() const { return schedule_; }

 private:
  Schedule schedule_;
  std::map<std::int64_t, std::shared_ptr<const ReadLists>> known_;
};

}  // namespace fast::simulation
