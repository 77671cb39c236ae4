#include "simulation/read_lists.hpp"

namespace fast::simulation {
namespace {

constexpr std::size_t most_remembered = 64;

ReadLists lists_of(const Topology& topology) {
  ReadLists lists;
  lists.first.push_back(0);
  for (int i = 0; i < topology.workers(); ++i) {
    const std::vector<int> sources = topology.in_neighbors(i);
    lists.sources.insert(lists.sources.end(), sources.begin(), sources.end());
    lists.first.push_back(lists.sources.size());
  }
  return lists;
}

}  // namespace

std::shared_ptr<const ReadLists> RoundReads::at(std::int64_t round) {
  const std::int64_t period = schedule_.period();
  const std::int64_t key = period > 0 ? round % period : round;
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  if (known_.size() >= most_remembered) known_.erase(known_.begin());
  return known_.emplace(key, std::make_shared<const ReadLists>(lists_of(schedule_.at(round))))
      .first->second;
}

}  // namespace fast::simulation
