// What choose_topology() takes for given hosts, and that survivors of a worker that leaves agree.
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>

#include <algorithm>
#include <mutex>

#include "support/catch.hpp"
#include "worker/constant.hpp"
#include "worker/start/requirements.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

TopologyUse use_of(const std::string& rule, std::int64_t staleness = 0) {
  return {.rule = algorithm::by_name(rule).traits(), .staleness = staleness};
}

/// So many ranks on each host, one host after the other.
std::vector<int> hosts_of(const std::vector<int>& counts) {
  std::vector<int> hosts;
  for (std::size_t host = 0; host < counts.size(); ++host) {
    hosts.insert(hosts.end(), static_cast<std::size_t>(counts[host]), static_cast<int>(host));
  }
  return hosts;
}

std::string chosen(const std::vector<int>& counts, const TopologyUse& use) {
  return choose_topology(hosts_of(counts), use).name;
}

}  // namespace

TEST_CASE("the topology follows from the number of hosts and of workers on each") {
  const TopologyUse awc = use_of("awc");
  CHECK(chosen({1}, awc) == "torus2d");
  CHECK(chosen({16}, awc) == "torus2d");
  CHECK(chosen({4, 4, 4, 4}, awc) == "hierarchical_one_peer");
  CHECK(chosen({2, 2, 2}, awc) == "hierarchical_one_peer");
  CHECK(chosen({1, 1, 1}, awc) == "base2");
  CHECK(chosen({3, 4}, awc) == "hierarchical");
  CHECK(choose_topology(hosts_of({4, 4, 4, 4}), awc).hosts == "4 hosts, 4 workers each");
  CHECK(choose_topology(hosts_of({4, 4, 4, 4}), awc).reason ==
        "4 hosts, 4 workers each: at most one payload per host and round");
  CHECK(choose_topology(hosts_of({3, 4}), awc).reason ==
        "2 hosts, 3 to 4 workers each: edges between the first workers of hosts only");
  CHECK(choose_topology(hosts_of({1, 1}), awc).reason ==
        "2 hosts, 1 worker each: at most one payload per host and round");
  CHECK_THAT(choose_topology(hosts_of({5}), awc).reason, Contains("1 host, 5 workers: "));
  CHECK_THROWS_WITH(choose_topology({}, awc), Contains("no workers"));
}

TEST_CASE("workers on the GPUs of one host read one neighbor a round, if the rule lets them") {
  const auto on_gpus = [](TopologyUse use) {
    use.on_gpus = true;
    return use;
  };
  for (const int workers : {2, 6, 8}) CHECK(chosen({workers}, on_gpus(use_of("awc"))) == "base2");
  CHECK(chosen({8}, on_gpus(use_of("awc", 1))) == "torus2d");
  CHECK(chosen({8}, on_gpus(use_of("relay_sum"))) == "grid1d");
  CHECK(chosen({8}, on_gpus(use_of("diloco"))) == "complete");
  CHECK(chosen({4, 4}, on_gpus(use_of("awc"))) == "hierarchical_one_peer");
}

TEST_CASE("with staleness above 0 the topology does not change from round to round") {
  for (const std::int64_t staleness : {std::int64_t{1}, unbounded_staleness}) {
    CHECK(chosen({4, 4}, use_of("awc", staleness)) == "hierarchical");
    CHECK(chosen({1, 1, 1, 1}, use_of("awc", staleness)) == "torus2d");
  }
}

TEST_CASE("a topology suits a rule that runs on it without a notice") {
  const std::vector<int> hosts = hosts_of({2, 2});
  CHECK(suits("ring", hosts, use_of("awc")));
  CHECK(suits("base2", hosts, use_of("awc")));
  CHECK_FALSE(suits("base2", hosts, use_of("awc", 1)));  // changes from round to round
  CHECK(suits("hierarchical", hosts, use_of("awc", 1)));
  CHECK_FALSE(suits("ring", hosts, use_of("pairwise")));
  CHECK_FALSE(suits("hypercube", hosts_of({3}), use_of("awc")));
  CHECK_FALSE(suits("nonsense", hosts, use_of("awc")));
  // It would exchange between sites in every second step, not in every 50th.
  CHECK_FALSE(suits("hierarchical_one_peer", hosts, use_of("awc_gasloc")));
}

TEST_CASE("every rule gets a topology that it runs on, and a notice only where none does without") {
  for (const auto name : algorithm::names()) {
    for (const std::vector<int>& counts :
         std::vector<std::vector<int>>{{1}, {6}, {1, 1, 1, 1}, {4, 4, 4, 4}, {2, 3}}) {
      const TopologyUse use = use_of(std::string(name));
      const std::vector<int> hosts = hosts_of(counts);
      if (use.rule.topology.needs_sites && counts.front() != counts.back()) {
        CHECK_THROWS_WITH(choose_topology(hosts, use), Contains("as many workers on each host"));
        continue;
      }
      INFO(name << " on " << counts.size() << " hosts of " << counts.front());
      const ChosenTopology found = choose_topology(hosts, use);
      const Schedule schedule =
          topology_on_hosts(found.name, hosts).make(static_cast<int>(hosts.size()));
      std::string notice;
      REQUIRE_NOTHROW(notice = fitting_weights(schedule, use.rule, use.weights, false).notice);
      if (use.rule.topology.mixing != algorithm::MixingRequirement::positive)
        CHECK(notice.empty());  // no lazy weights
    }
  }
  CHECK(chosen({4, 4}, use_of("pairwise")) == "random_matchings");
  CHECK(chosen({4, 4}, use_of("relay_sum")) == "grid1d");
  CHECK(chosen({4, 4}, use_of("awc_gasloc")) == "sites");
  CHECK(chosen({4, 4}, use_of("gradient_tracking")) != "hierarchical_one_peer");
}

TEST_CASE("another worker of the host takes over when a representative has left") {
  constexpr int workers = 8, leaver = 1, rounds = 400;
  std::mutex mutex;
  std::vector<double> ends;
  local::run(workers, [&](const Group& group) {
    testing::Constant c(group, schedule::hierarchical_one_peer(4), group.rank() < 4 ? 0 : 1);
    c.idle(group.rank() == leaver ? 1 : rounds);
    if (group.rank() == leaver) return;
    const std::lock_guard lock(mutex);
    ends.push_back(c.x[0]);
  });
  REQUIRE(ends.size() == workers - 1);
  const auto [low, high] = std::minmax_element(ends.begin(), ends.end());
  CHECK(*high - *low < 1e-9);
  CHECK(*low > 0.2);  // both hosts have a part in it
  CHECK(*high < 0.8);
}
