#include <fast/topology/graphs.hpp>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/stencil.hpp>
#include <functional>
#include <set>
#include <utility>

#include "core/contains.hpp"
#include "topology/hosts.hpp"
#include "topology/stencil_graph.hpp"

namespace fast::graph {
namespace {

using Lists = std::vector<std::vector<int>>;
constexpr int most_draws = 50;
constexpr int most_listed_workers = 1 << 22;
constexpr std::int64_t most_listed_ends = 200'000'000;

void connect(Lists& lists, int a, int b) {
  lists[a].push_back(b);
  lists[b].push_back(a);
}

bool is_connected(const Lists& lists) {
  std::vector<bool> seen(lists.size());
  std::vector<int> open = {0};
  seen[0] = true;
  std::size_t count = 1;
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    for (const int j : lists[i]) {
      if (seen[j]) continue;
      seen[j] = true;
      ++count;
      open.push_back(j);
    }
  }
  return count == lists.size();
}

void check_size(const char* name, int workers, int degree = 2) {
  require(std::int64_t{workers} * degree <= most_listed_ends, ErrorKind::topology,
          "{}: {} workers of {} neighbors, at most {:.0e} in all are held; lower one of them", name,
          workers, degree, static_cast<double>(most_listed_ends));
  require(workers <= most_listed_workers, ErrorKind::topology,
          "{}: {} workers, at most {} are held as lists; choose a stencil or random_matchings",
          name, workers, most_listed_workers);
}

Topology connected_draw(const std::string& name, std::uint64_t seed, const char* mend,
                        const std::function<Lists(Rng&)>& draw) {
  for (int attempt = 0; attempt < most_draws; ++attempt) {
    Rng rng(mix_seed(seed, static_cast<std::uint64_t>(attempt)));
    Lists lists = draw(rng);
    if (is_connected(lists)) return {name, std::move(lists)};
  }
  fail(ErrorKind::topology, "{}: none of {} draws is connected; {}", name, most_draws, mend);
}

// Ends of edges are paired at random; loops and repeated edges then swap ends with random others
// until none is left.
Lists paired_at_random(int workers, int degree, Rng& rng) {
  std::vector<int> ends;
  ends.reserve(static_cast<std::size_t>(workers) * degree);
  for (int i = 0; i < workers; ++i) ends.insert(ends.end(), degree, i);
  rng.shuffle(std::span<int>(ends));
  std::multiset<std::pair<int, int>> edges;
  const auto edge = [&](std::size_t k) { return std::minmax(ends[2 * k], ends[2 * k + 1]); };
  const std::size_t count = ends.size() / 2;
  for (std::size_t k = 0; k < count; ++k) edges.insert(edge(k));
  const auto bad = [&](std::size_t k) {
    return ends[2 * k] == ends[2 * k + 1] || edges.count(edge(k)) > 1;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t k = 0; k < count; ++k) {
      while (bad(k)) {
        const std::size_t other = rng.below(count);
        edges.erase(edges.find(edge(k)));
        if (other != k) edges.erase(edges.find(edge(other)));
        std::swap(ends[2 * k + 1], ends[2 * other + rng.below(2)]);
        edges.insert(edge(k));
        if (other != k) edges.insert(edge(other));
        changed = true;
      }
    }
  }
  Lists lists(static_cast<std::size_t>(workers));
  for (std::size_t k = 0; k < count; ++k) connect(lists, ends[2 * k], ends[2 * k + 1]);
  return lists;
}

Lists complete_lists(int workers) {
  Lists lists(static_cast<std::size_t>(workers));
  for (int i = 0; i < workers; ++i) {
    for (int j = 0; j < i; ++j) connect(lists, i, j);
  }
  return lists;
}

// Pairs are numbered (1,0), (2,0), (2,1), (3,0), ...; the gaps between edges are geometric
// (Batagelj & Brandes 2005).
Lists pairs_with_probability(int workers, double probability, Rng& rng) {
  if (probability >= 1) return complete_lists(workers);
  Lists lists(static_cast<std::size_t>(workers));
  const double scale = std::log1p(-probability);
  std::int64_t row = 1, column = -1;
  while (row < workers) {
    const double gap = std::floor(std::log(1 - rng.uniform()) / scale);
    if (gap > 4e18) break;
    column += 1 + static_cast<std::int64_t>(gap);
    while (row < workers && column >= row) column -= row++;
    if (row < workers) connect(lists, static_cast<int>(row), static_cast<int>(column));
  }
  return lists;
}

Lists rewired_ring(int workers, int neighbors, double rewiring, Rng& rng) {
  Lists lists(static_cast<std::size_t>(workers));
  for (int hop = 1; hop <= neighbors / 2; ++hop) {
    for (int i = 0; i < workers; ++i) {
      const int next = (i + hop) % workers;
      if (i != next && !contains(lists[i], next)) connect(lists, i, next);
    }
  }
  for (int hop = 1; hop <= neighbors / 2; ++hop) {
    for (int i = 0; i < workers; ++i) {
      const int old = (i + hop) % workers;
      if (rng.uniform() >= rewiring || !contains(lists[i], old)) continue;
      if (static_cast<int>(lists[i].size()) >= workers - 1) continue;
      int far = i;
      while (far == i || contains(lists[i], far)) {
        far = static_cast<int>(rng.below(static_cast<std::uint64_t>(workers)));
      }
      std::erase(lists[i], old);
      std::erase(lists[old], i);
      connect(lists, i, far);
    }
  }
  return lists;
}

class HostGraph final : public Graph, public InHosts {
 public:
  HostGraph(Topology among, Lists members, int links)
      : among_(std::move(among)),
        members_(std::move(members)),
        links_(links),
        places_(places_on(members_)) {}

  int workers() const override { return static_cast<int>(places_.size()); }
  std::vector<int> in_neighbors(int worker) const override { return at(worker, true); }
  std::vector<int> out_neighbors(int worker) const override { return at(worker, false); }
  bool is_symmetric() const override { return among_.is_symmetric(); }
  const Lists& workers_of_host() const override { return members_; }

 private:
  std::vector<int> at(int worker, bool in) const {
    const auto [host, place] = places_[worker];
    std::vector<int> found = members_[host];
    std::erase(found, worker);
    if (place < links_) {
      for (const int other : in ? among_.in_neighbors(host) : among_.out_neighbors(host)) {
        if (place < static_cast<int>(members_[other].size())) {
          found.push_back(members_[other][place]);
        }
      }
    }
    std::ranges::sort(found);
    return found;
  }

  Topology among_;
  Lists members_;
  int links_;
  std::vector<PlaceOnHost> places_;  // of each worker
};

Schedule over_hosts(const std::string& name, const TopologyRule& among, Lists members, int links) {
  const Schedule hosts = among.make(static_cast<int>(members.size()));
  require(hosts.is_static(), ErrorKind::topology,
          "{}: {} changes from round to round; choose a static topology among hosts", name,
          among.name());
  return Topology(name, std::make_shared<HostGraph>(hosts.at(0), std::move(members), links));
}

}  // namespace

TopologyRule star(int center) {
  require(center >= 0, ErrorKind::topology, "star: center {}, at least 0 is required", center);
  return {"star", [center](int workers) {
            check_size("star", workers);
            require(center < workers, ErrorKind::topology,
                    "star: center {}, this run has {} workers (0..{}); name one of them", center,
                    workers, workers - 1);
            Lists lists(static_cast<std::size_t>(workers));
            for (int i = 0; i < workers; ++i) {
              if (i != center) connect(lists, i, center);
            }
            return Schedule(Topology("star", std::move(lists)));
          }};
}

TopologyRule tree(int branching) {
  require(branching >= 1, ErrorKind::topology, "tree: branching {}, at least 1 is required",
          branching);
  return {"tree", [branching](int workers) {
            check_size("tree", workers);
            Lists lists(static_cast<std::size_t>(workers));
            for (int i = 1; i < workers; ++i) connect(lists, i, (i - 1) / branching);
            return Schedule(Topology("tree", std::move(lists)));
          }};
}

TopologyRule random_regular(int degree, std::uint64_t seed) {
  require(degree >= 1 && degree <= 4096, ErrorKind::topology,
          "random_regular: degree {}, 1 to 4096 is possible", degree);
  return {"random_regular", [=](int workers) {
            check_size("random_regular", workers, std::min(degree, workers));
            if (degree >= workers - 1) {
              return Schedule(Topology("random_regular", complete_lists(workers)));
            }
            require(workers % 2 == 0 || degree % 2 == 0, ErrorKind::topology,
                    "random_regular: {} workers of degree {}, their product has to be even; choose "
                    "degree {} or {}",
                    workers, degree, degree - 1, degree + 1);
            return Schedule(connected_draw(
                "random_regular", seed, "raise the degree to 3 or more", [&](Rng& rng) {
                  if (2 * degree <= workers - 1) return paired_at_random(workers, degree, rng);
                  // Dense graphs by their complement.
                  Lists absent = paired_at_random(workers, workers - 1 - degree, rng);
                  Lists lists(absent.size());
                  for (int i = 0; i < workers; ++i) {
                    std::ranges::sort(absent[i]);
                    for (int j = 0; j < workers; ++j) {
                      if (j != i && !std::ranges::binary_search(absent[i], j)) {
                        lists[i].push_back(j);
                      }
                    }
                  }
                  return lists;
                }));
          }};
}

TopologyRule erdos_renyi(std::optional<double> probability, std::uint64_t seed) {
  require(!probability || (*probability > 0 && *probability <= 1), ErrorKind::topology,
          "erdos_renyi: probability {}, more than 0 and at most 1 is required",
          probability.value_or(0));
  return {
      "erdos_renyi", [=](int workers) {
        check_size("erdos_renyi", workers);
        const double usual = workers < 2 ? 1 : std::min(1.0, 2 * std::log(workers) / workers);
        const double p = probability.value_or(usual);
        require(p * workers * workers < 4e8, ErrorKind::topology,
                "erdos_renyi: {} workers with probability {} make about {:.2g} edges, 2e8 can be "
                "held; lower the probability",
                workers, p, p * workers * workers / 2);
        return Schedule(connected_draw("erdos_renyi", seed, "raise the probability", [&](Rng& rng) {
          return pairs_with_probability(workers, p, rng);
        }));
      }};
}

TopologyRule small_world(int neighbors, double rewiring, std::uint64_t seed) {
  require(neighbors >= 2 && neighbors <= 4096 && neighbors % 2 == 0, ErrorKind::topology,
          "small_world: {} neighbors, an even number of 2 to 4096 is required", neighbors);
  require(rewiring >= 0 && rewiring <= 1, ErrorKind::topology,
          "small_world: rewiring {}, 0 to 1 is required", rewiring);
  return {"small_world", [=](int workers) {
            check_size("small_world", workers, std::min(neighbors, workers));
            return Schedule(connected_draw(
                "small_world", seed, "raise the neighbors to 4 or more", [&](Rng& rng) {
                  return rewired_ring(workers, std::min(neighbors, workers), rewiring, rng);
                }));
          }};
}

TopologyRule hierarchical(TopologyRule among, int workers_per_host, int links) {
  require(workers_per_host >= 1 && links >= 1, ErrorKind::topology,
          "hierarchical: {} workers a host and {} links, at least 1 of each is required",
          workers_per_host, links);
  const std::string name = "hierarchical " + among.name();
  return {name, [=](int workers) {
            check_size("hierarchical", workers);
            return over_hosts(name, among, hosts_in_order(workers, workers_per_host), links);
          }};
}

TopologyRule hierarchical(TopologyRule among, const std::vector<int>& host_of_rank, int links) {
  require(!host_of_rank.empty() && links >= 1, ErrorKind::topology,
          "hierarchical: hosts of {} workers and {} links, at least 1 of each is required",
          host_of_rank.size(), links);
  const std::string name = "hierarchical " + among.name();
  return {name,
          [=, members = ranks_by_host(host_of_rank)](int) {
            return over_hosts(name, among, members, links);
          },
          static_cast<int>(host_of_rank.size())};
}

}  // namespace fast::graph

namespace fast {

HostEdges::Kind host_edges_of(const Topology& topology) {
  const auto* known = dynamic_cast<const HostEdges*>(&topology.graph());
  return known == nullptr ? HostEdges::Kind::anywhere : known->host_edges();
}

const InShards* shards_of(const Topology& topology) {
  const auto* known = dynamic_cast<const InShards*>(&topology.graph());
  return known == nullptr || known->shards() == 1 ? nullptr : known;
}

}  // namespace fast

namespace fast::schedule {
namespace {

Topology one_hop(int workers, std::int64_t hop) {
  const Offsets offset = {{static_cast<int>(-hop)}};
  return {fmt::format("hop {}", hop), std::make_shared<StencilGraph>(GridShape{{workers}}, offset)};
}

std::vector<Topology> hops(int workers) {
  std::vector<Topology> rounds;
  std::int64_t hop = 1;
  do {
    rounds.push_back(one_hop(workers, hop));
    hop *= 2;
  } while (hop < workers);
  return rounds;
}

}  // namespace

TopologyRule one_peer_exponential() {
  return {"one_peer_exponential",
          [](int workers) { return Schedule("one_peer_exponential", hops(workers)); }};
}

TopologyRule exponential_ring() {
  return {"exponential_ring", [](int workers) {
            std::vector<Topology> rounds;
            const Topology ring = stencil::ring().make(workers).at(0);
            for (const Topology& hop : hops(workers)) {
              rounds.push_back(hop);
              rounds.push_back(ring);
            }
            return Schedule("exponential_ring", std::move(rounds));
          }};
}

TopologyRule equidyn(std::uint64_t seed) {
  return {"equidyn", [seed](int workers) {
            const auto at_round = [=](std::int64_t round) {
              if (workers == 1) return one_hop(1, 1);
              Rng rng(mix_seed(seed, static_cast<std::uint64_t>(round)));
              const std::uint64_t hop = 1 + rng.below(static_cast<std::uint64_t>(workers - 1));
              return one_hop(workers, static_cast<std::int64_t>(hop));
            };
            return Schedule("equidyn", workers, 0, at_round);
          }};
}

}  // namespace fast::schedule
