#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>
#include <functional>
#include <string>
#include <utility>

#include "topology/hosts.hpp"

namespace fast {
namespace {

using Lists = std::vector<std::vector<int>>;

constexpr int most_workers_of_default_host = 4;
constexpr std::int64_t most_neighbors_in_a_host = 4096;

// What a host does with its partner in a round among hosts: the weight with which representatives
// read each other, and the share of the host's average that they then have.
struct Crossing {
  int partner = -1;   // -1: none in this round
  double weight = 0;  // of a representative for its counterpart
  double share = 0;   // of all representatives of the host together
};

// The rounds of one exchange among hosts.
struct Rounds {
  std::int64_t all = 0;   // of an exchange
  std::int64_t lead = 0;  // before the first exchange of a cycle
};

// How hosts exchange.
struct HostExchange {
  int links = 1;           // representatives of a host
  std::int64_t every = 0;  // rounds from one exchange to the next; 0: as few as are needed
  bool sharded = false;    // each shard of the model has representatives of its own
};

enum class Kind { within, across, back };  // A, B and C of the description

class HostCycle {
 public:
  HostCycle(Lists members, const HostExchange& exchange)
      : members_(std::move(members)),
        size_(static_cast<int>(members_.front().size())),
        links_(std::min(exchange.links, size_)),
        sharded_(exchange.sharded),
        rounds_(rounds_of(size_, exchange.every)),
        among_(schedule::base(1).make(hosts())),
        places_(places_on(members_)) {}

  int workers() const { return static_cast<int>(places_.size()); }
  const Lists& members() const { return members_; }
  PlaceOnHost place_of(int worker) const { return places_[static_cast<std::size_t>(worker)]; }
  const std::vector<int>& workers_of(int host) const {
    return members_[static_cast<std::size_t>(host)];
  }

  /// Rounds until the average is exact.
  std::int64_t cycle() const {
    return hosts() == 1 ? 1 : rounds_.lead + rounds_.all * among_.period();
  }
  /// Until each worker has been a representative equally often.
  std::int64_t period() const { return hosts() == 1 || size_ == 1 ? cycle() : cycle() * size_; }

  Kind kind_of(std::int64_t round) const {
    const std::int64_t step = round % cycle() - rounds_.lead;
    if (hosts() == 1 || step < 0) return Kind::within;
    const std::int64_t left = rounds_.all - step % rounds_.all;  // of the exchange
    if (left > tail(size_)) return Kind::within;
    return left == tail(size_) ? Kind::across : Kind::back;
  }

  bool is_within(std::int64_t round) const { return kind_of(round) == Kind::within; }

  int shards() const { return sharded_ && hosts() > 1 ? size_ : 1; }
  /// Representatives change from cycle to cycle, and within a cycle.
  bool represents(std::int64_t round, int place, int shard) const {
    return (shard_of(round, place) - shard + size_) % size_ < links_;
  }
  /// For which it is the representative, or the first of them.
  int shard_of(std::int64_t round, int place) const {
    const std::int64_t first = round / cycle() + among_round(round);
    return static_cast<int>((place - first % size_ + size_) % size_);
  }

  /// Of the exchange that `round` is a part of.
  Crossing crossing(std::int64_t round, int host) const {
    if (kind_of(round) == Kind::within) return {};
    const Topology topology = among_.at(among_round(round));
    const std::vector<int> partners = topology.in_neighbors(host);
    if (partners.empty()) return {};
    const double wanted = topology.given_weights(host).front();
    const double weight = std::min(wanted * size_ / links_, 1 - (1 - wanted) / size_);
    return {partners.front(), weight, wanted / weight};
  }

  /// The weight of a worker at `place` in its host's average.
  double weight_inside(const Crossing& crossing, std::int64_t round, int place, int shard) const {
    if (crossing.partner < 0 || links_ == size_) return 1.0 / size_;
    return represents(round, place, shard) ? crossing.share / links_
                                           : (1 - crossing.share) / (size_ - links_);
  }

 private:
  int hosts() const { return static_cast<int>(members_.size()); }
  std::int64_t among_round(std::int64_t round) const {
    return std::max<std::int64_t>(0, round % cycle() - rounds_.lead) / rounds_.all;
  }
  // An exchange ends with B and C, or with B alone where a host has one worker.
  static std::int64_t tail(int size) { return size == 1 ? 1 : 2; }
  static Rounds rounds_of(int size, std::int64_t every) {
    if (every > 0) return {every, 0};
    return {tail(size), size == 1 ? 0 : 1};
  }

  Lists members_;
  int size_, links_;
  bool sharded_;
  Rounds rounds_;
  Schedule among_;
  std::vector<PlaceOnHost> places_;  // of each worker
};

class CycleGraph : public Graph,
                   public GraphWeights,
                   public InHosts,
                   public HostEdges,
                   public InShards {
 public:
  CycleGraph(std::shared_ptr<const HostCycle> cycle, std::int64_t round)
      : cycle_(std::move(cycle)), round_(round) {}

  int workers() const override { return cycle_->workers(); }
  std::vector<int> out_neighbors(int worker) const override { return in_neighbors(worker); }
  bool is_symmetric() const override { return true; }
  const Lists& workers_of_host() const override { return cycle_->members(); }
  int shards() const override { return cycle_->shards(); }
  bool differ() const override { return shards() > 1 && !cycle_->is_within(round_); }
  std::vector<double> in_weights(int worker) const override { return shard_weights(0, worker); }

 protected:
  const HostCycle& cycle() const { return *cycle_; }
  std::int64_t round() const { return round_; }
  Crossing crossing_of(int host) const { return cycle_->crossing(round_, host); }

 private:
  std::shared_ptr<const HostCycle> cycle_;
  std::int64_t round_;
};

// All workers of a host read each other.
class InsideGraph final : public CycleGraph {
 public:
  using CycleGraph::CycleGraph;

  HostEdges::Kind host_edges() const override { return HostEdges::Kind::within; }
  std::vector<int> in_neighbors(int worker) const override {
    std::vector<int> others = cycle().workers_of(cycle().place_of(worker).host);
    std::erase(others, worker);
    return others;
  }
  std::vector<double> shard_weights(int shard, int worker) const override {
    const auto [host, place] = cycle().place_of(worker);
    const Crossing crossing = crossing_of(host);
    std::vector<double> weights;
    for (int other = 0; other < static_cast<int>(cycle().workers_of(host).size()); ++other) {
      if (other != place) weights.push_back(cycle().weight_inside(crossing, round(), other, shard));
    }
    return weights;
  }
  std::optional<int> carried(int /*worker*/) const override { return std::nullopt; }
  double self_weight(int worker) const override {
    const auto [host, place] = cycle().place_of(worker);
    return cycle().weight_inside(crossing_of(host), round(), place, 0);
  }
};

// Representatives of two hosts read each other.
class AcrossGraph final : public CycleGraph {
 public:
  using CycleGraph::CycleGraph;

  HostEdges::Kind host_edges() const override { return HostEdges::Kind::between; }
  std::vector<int> in_neighbors(int worker) const override {
    const auto [host, place] = cycle().place_of(worker);
    if (shards() == 1 && !cycle().represents(round(), place, 0)) return {};
    const int partner = crossing_of(host).partner;
    if (partner < 0) return {};
    return {cycle().workers_of(partner)[static_cast<std::size_t>(place)]};
  }
  std::vector<double> shard_weights(int shard, int worker) const override {
    if (in_neighbors(worker).empty()) return {};
    const auto [host, place] = cycle().place_of(worker);
    return {cycle().represents(round(), place, shard) ? crossing_of(host).weight : 0};
  }
  std::optional<int> carried(int worker) const override {
    if (shards() == 1) return std::nullopt;
    return cycle().shard_of(round(), cycle().place_of(worker).place);
  }
  double self_weight(int worker) const override {
    const std::vector<double> weights = in_weights(worker);
    return weights.empty() ? 1 : 1 - weights.front();
  }
};

Schedule schedule_of(const std::string& name, Lists members, const HostExchange& exchange) {
  const auto cycle = std::make_shared<const HostCycle>(std::move(members), exchange);
  return {name, cycle->workers(), cycle->period(), [cycle](std::int64_t round) {
            if (cycle->kind_of(round) == Kind::across) {
              return Topology("between hosts", std::make_shared<AcrossGraph>(cycle, round));
            }
            return Topology("within hosts", std::make_shared<InsideGraph>(cycle, round));
          }};
}

void check_host(std::int64_t workers, const std::string& name) {
  require(workers <= most_neighbors_in_a_host, ErrorKind::topology,
          "{}: {} workers on a host, which all read each other; at most {} can; choose torus2d",
          name, workers, most_neighbors_in_a_host);
}

int default_size(int workers) {
  int size = most_workers_of_default_host;
  while (workers % size != 0) --size;
  return size;
}

Lists equal_hosts(int workers, int size, const std::string& name) {
  check_host(size, name);
  require(workers % size == 0, ErrorKind::topology,
          "{}: {} workers in hosts of {} leave {} for the last host; all hosts need the same "
          "number of workers: start {} or {} workers, or choose hierarchical",
          name, workers, size, workers % size, workers - workers % size,
          workers - workers % size + size);
  return hosts_in_order(workers, size);
}

Lists hosts_of_ranks(const std::vector<int>& host_of_rank, const std::string& name) {
  Lists members = ranks_by_host(host_of_rank);
  const std::size_t size = members.front().size();
  check_host(static_cast<std::int64_t>(size), name);
  for (const std::vector<int>& host : members) {
    require(host.size() == size, ErrorKind::topology,
            "{}: the host of worker {} has {} workers, that of worker {} has {}; all hosts need "
            "the same number of workers: start as many ranks on each host, or choose hierarchical",
            name, members.front().front(), size, host.front(), host.size());
  }
  return members;
}

using HostsOf = std::function<Lists(int workers)>;

/// `size`: of each host; 0: as default_size() has it. `what`: a host or a site.
HostsOf hosts_of_size(const std::string& name, int size, const char* what) {
  require(size >= 0, ErrorKind::topology, "{}: {} workers a {}, at least 1 is required", name, size,
          what);
  return [=](int workers) {
    return equal_hosts(workers, size == 0 ? default_size(workers) : size, name);
  };
}

HostsOf known_hosts(const std::string& name, const std::vector<int>& host_of_rank) {
  require(!host_of_rank.empty(), ErrorKind::topology, "{}: no workers; at least 1 is required",
          name);
  return [=](int) { return hosts_of_ranks(host_of_rank, name); };
}

TopologyRule rule_over(const std::string& name, HostsOf hosts_of, const HostExchange& exchange,
                       std::size_t workers = 0) {
  require(exchange.links >= 1, ErrorKind::topology, "{}: {} links, at least 1 is required", name,
          exchange.links);
  return {name,
          [=, hosts_of = std::move(hosts_of)](int count) {
            return schedule_of(name, hosts_of(count), exchange);
          },
          static_cast<int>(workers)};
}

constexpr const char *one_peer_name = "hierarchical_one_peer", *sites_name = "sites",
                     *sharded_name = "sharded_one_peer";

/// A round within the site must come before the exchange, and one after it.
std::int64_t checked_every(std::int64_t every) {
  require(every >= 3, ErrorKind::topology,
          "{}: an exchange in every {} rounds, at least 3 are required", sites_name, every);
  return every;
}

}  // namespace

namespace schedule {

TopologyRule hierarchical_one_peer(int workers_per_host, int links) {
  return rule_over(one_peer_name, hosts_of_size(one_peer_name, workers_per_host, "host"), {links});
}

TopologyRule hierarchical_one_peer(const std::vector<int>& host_of_rank, int links) {
  return rule_over(one_peer_name, known_hosts(one_peer_name, host_of_rank), {links},
                   host_of_rank.size());
}

TopologyRule sharded_one_peer(int workers_per_host) {
  return rule_over(sharded_name, hosts_of_size(sharded_name, workers_per_host, "host"),
                   {.sharded = true});
}

TopologyRule sharded_one_peer(const std::vector<int>& host_of_rank) {
  return rule_over(sharded_name, known_hosts(sharded_name, host_of_rank), {.sharded = true},
                   host_of_rank.size());
}

TopologyRule sites(std::int64_t every, int workers_per_site, int links) {
  return rule_over(sites_name, hosts_of_size(sites_name, workers_per_site, "site"),
                   {links, checked_every(every)});
}

TopologyRule sites(std::int64_t every, const std::vector<int>& site_of_rank, int links) {
  return rule_over(sites_name, known_hosts(sites_name, site_of_rank), {links, checked_every(every)},
                   site_of_rank.size());
}

}  // namespace schedule
}  // namespace fast
