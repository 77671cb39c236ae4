#include "topology_tools/diameter.hpp"

#include <algorithm>
#include <fast/topology/stencil.hpp>
#include <utility>

namespace fast {
namespace {

constexpr int most_exact_workers = 20'000;

std::int64_t rounds_of(const Schedule& schedule) {
  return schedule.period_or(looked_at_of_endless);
}

// Adjacency in one piece: the readers of i are to[first[i]] .. to[first[i + 1]].
struct Adjacency {
  std::vector<int> first = {0};
  std::vector<int> to;

  explicit Adjacency(const Schedule& schedule) {
    std::vector<Topology> rounds;
    for (std::int64_t t = 0; t < rounds_of(schedule); ++t) rounds.push_back(schedule.at(t));
    std::vector<int> all;
    for (int i = 0; i < schedule.workers(); ++i) {
      all.clear();
      for (const Topology& topology : rounds) {
        const std::vector<int> readers = topology.out_neighbors(i);
        all.insert(all.end(), readers.begin(), readers.end());
      }
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
      to.insert(to.end(), all.begin(), all.end());
      first.push_back(static_cast<int>(to.size()));
    }
  }
};

class Search {
 public:
  explicit Search(const Adjacency& edges)
      : edges_(edges), hops_(edges.first.size() - 1), queue_(edges.first.size() - 1) {}

  /// Hops from `start` to the farthest worker, and which that is.
  std::pair<int, int> farthest(int start) {
    std::fill(hops_.begin(), hops_.end(), -1);
    std::size_t begin = 0, end = 0;
    hops_[start] = 0;
    queue_[end++] = start;
    while (begin < end) {
      const int i = queue_[begin++];
      for (int k = edges_.first[i]; k < edges_.first[i + 1]; ++k) {
        const int j = edges_.to[k];
        if (hops_[j] >= 0) continue;
        hops_[j] = hops_[i] + 1;
        queue_[end++] = j;
      }
    }
    const int last = queue_[end - 1];
    return {hops_[last], last};
  }

 private:
  const Adjacency& edges_;
  std::vector<int> hops_, queue_;
};

}  // namespace

bool closed_form_shape(const Schedule& schedule) {
  for (std::int64_t t = 0; t < rounds_of(schedule); ++t) {
    const Topology topology = schedule.at(t);
    const auto* stencil = dynamic_cast<const StencilGraph*>(&topology.graph());
    if (stencil == nullptr || !stencil->grid().periodic) return false;
  }
  return true;
}

Figure diameter(const Schedule& schedule) {
  const Topology first = schedule.at(0);
  if (first.in_degree(0) == schedule.workers() - 1 && closed_form_shape(schedule)) {
    return {schedule.workers() > 1 ? 1.0 : 0.0, false};
  }
  const Adjacency edges(schedule);
  Search search(edges);
  auto [most, far] = search.farthest(0);
  if (closed_form_shape(schedule)) return {static_cast<double>(most), false};
  const bool exact = schedule.workers() <= most_exact_workers;
  for (int i = 1; exact && i < schedule.workers(); ++i) {
    most = std::max(most, search.farthest(i).first);
  }
  for (int sweep = 0; !exact && sweep < 8; ++sweep) {
    const auto [hops, next] = search.farthest(far);
    most = std::max(most, hops);
    far = next;
  }
  return {static_cast<double>(most), !exact};
}

}  // namespace fast
