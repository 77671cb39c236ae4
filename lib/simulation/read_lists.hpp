// Whom each worker reads in a round, one list after another.
#pragma once

#include <cstdint>
#include <fast/topology/topology.hpp>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "topology/hosts.hpp"

namespace fast::simulation {

struct ReadLists {
  explicit ReadLists(const Topology& topology) : first{0} {
    if (const InShards* shards = shards_of(topology); shards != nullptr && shards->carried(0))
      part /= shards->shards();
    for (int i = 0; i < topology.workers(); ++i) {
      const std::vector<int> found = topology.in_neighbors(i);
      sources.insert(sources.end(), found.begin(), found.end());
      first.push_back(sources.size());
    }
  }

  std::vector<std::size_t> first;  ///< of each worker, and the end
  std::vector<int> sources;
  double part = 1;  ///< of a message, that each edge carries

  std::span<const int> of(int worker) const {
    const auto at = static_cast<std::size_t>(worker);
    return std::span(sources).subspan(first[at], first[at + 1] - first[at]);
  }
};

/// The lists of a schedule. Remembers a period where it is short, and otherwise the last rounds.
class RoundReads {
 public:
  explicit RoundReads(Schedule schedule) : schedule_(std::move(schedule)) {}

  std::shared_ptr<const ReadLists> at(std::int64_t round) {
    const std::int64_t period = schedule_.period();
    const std::int64_t key = period > 0 ? round % period : round;
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    if (known_.size() >= most_remembered) known_.erase(known_.begin());
    return known_.emplace(key, std::make_shared<const ReadLists>(schedule_.at(round)))
        .first->second;
  }

  const Schedule& schedule() const { return schedule_; }

 private:
  static constexpr std::size_t most_remembered = 64;

  Schedule schedule_;
  std::map<std::int64_t, std::shared_ptr<const ReadLists>> known_;
};

}  // namespace fast::simulation
