#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/simulation/plan.hpp>
#include <fast/simulation/workload.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <string>

#include "support/catch.hpp"
#include "topology/placement.hpp"

using namespace fast;
using namespace fast::simulation;
using Catch::Matchers::Contains;

namespace {

Cluster fast_network() {
  Cluster cluster;
  cluster.hosts = 8;
  cluster.link_bandwidth = 1e9;
  cluster.link_latency_s = 0;
  cluster.step_s = 0.1;
  cluster.payload_bytes = 4e6;
  return cluster;
}

const Candidate& found(const Plan& plan, const std::string& exchange) {
  for (const Candidate& c : plan.candidates) {
    if (c.exchange == exchange) return c;
  }
  throw std::runtime_error("no " + exchange);
}

std::vector<int> hosts_of(const Cluster& cluster) {
  std::vector<int> hosts;
  for (int r = 0; r < cluster.workers(); ++r) hosts.push_back(r / cluster.workers_per_host);
  return hosts;
}

// As plan() places it.
Schedule placed_schedule(const Cluster& cluster, const std::string& name) {
  const std::vector<int> hosts = hosts_of(cluster);
  const Schedule made = topology_on_hosts(name, hosts).make(cluster.workers());
  return placed(made, place(made, hosts).worker_of_rank);
}

// In a round, in the mean over the period: those that leave or enter the host, the larger.
double messages_of_busiest_host(const Schedule& schedule, int workers_per_host) {
  std::vector<double> leaving(static_cast<std::size_t>(schedule.workers())), entering = leaving;
  for (std::int64_t t = 0; t < schedule.period(); ++t) {
    const Topology topology = schedule.at(t);
    for (int i = 0; i < topology.workers(); ++i) {
      for (const int j : topology.in_neighbors(i)) {
        const int from = j / workers_per_host, to = i / workers_per_host;
        if (from == to) continue;
        ++leaving[static_cast<std::size_t>(from)];
        ++entering[static_cast<std::size_t>(to)];
      }
    }
  }
  const double most =
      std::max(*std::ranges::max_element(leaving), *std::ranges::max_element(entering));
  return most / static_cast<double>(schedule.period());
}

PlanOptions one(const std::string& topology) {
  PlanOptions options;
  options.topologies = {topology};
  options.staleness = {0};
  options.codecs = {"identity"};
  return options;
}

}  // namespace

TEST_CASE("messages of a round share the links of their hosts") {
  Cluster cluster = fast_network();
  // A ring of one worker a host: two messages leave and two enter each host.
  const TransferTime single = shared_links(cluster, stencil::ring().make(8));
  CHECK(single(0, 0, 1, 4e6) == Approx(2 * 4e6 / 1e9));
  // Two workers a host: one of the two neighbors is on the host.
  cluster.hosts = 4;
  cluster.workers_per_host = 2;
  const TransferTime paired = shared_links(cluster, stencil::ring().make(8));
  CHECK(paired(0, 0, 1, 4e6) == Approx(4e6 / cluster.memory_bandwidth));
  CHECK(paired(0, 1, 2, 4e6) == Approx(2 * 4e6 / 1e9));
}

TEST_CASE("no schedule is planned faster than its messages pass the links") {
  Cluster cluster = fast_network();
  cluster.link_bandwidth = 1e6;  // a message takes 4 s, a step .1 s
  cluster.memory_bandwidth = 1e15;
  for (const int each : {1, 4}) {
    cluster.workers_per_host = each;
    for (const int hosts : {8, 10}) {
      cluster.hosts = hosts;
      for (const char* name : {"hierarchical_one_peer", "base2", "one_peer_exponential"}) {
        PlanOptions options = one(name);
        options.staleness = {0, 1};
        const Plan made = plan(cluster, options);
        const Schedule schedule = placed_schedule(cluster, name);
        for (const Candidate& c : made.candidates) {
          if (c.is_allreduce()) continue;
          INFO(name << ", " << hosts << " hosts, staleness " << *c.staleness);
          const double least_s = messages_of_busiest_host(schedule, each) * 4;
          REQUIRE(least_s > 0.5);
          CHECK(c.round_s >= least_s * (1 - 1e-9));
        }
      }
    }
  }
}

TEST_CASE("shards of a payload take the link of a host about as long as the payload") {
  Cluster cluster = fast_network();
  cluster.workers_per_host = 4;
  cluster.link_bandwidth = 1e6;
  const auto round_s = [&](const std::string& name) {
    return found(plan(cluster, one(name)), name).round_s;
  };
  // All workers of a host wait, in place of one: some steps are not hidden any more.
  CHECK(round_s("sharded_one_peer") >= round_s("hierarchical_one_peer"));
  CHECK(round_s("sharded_one_peer") == Approx(round_s("hierarchical_one_peer")).epsilon(0.05));
  const Schedule sharded = schedule::sharded_one_peer(4).make(32);
  CHECK(shared_links(cluster, sharded)(1, 0, 4, 1e6) == Approx(4.0));  // four shards share it
}

TEST_CASE("rounds of a plan are the longer of step and shared messages") {
  Cluster cluster = fast_network();
  CHECK(found(plan(cluster, one("ring")), "ring").round_s == Approx(0.1));
  cluster.link_bandwidth = 1e7;
  const Plan slow = plan(cluster, one("ring"));
  CHECK(found(slow, "ring").round_s == Approx(2 * 4e6 / 1e7));
  // 2 (N-1)/N payloads, of which half a step is hidden.
  CHECK(found(slow, "all-reduce (ring)").round_s == Approx(0.1 + 2 * 7.0 / 8 * 0.4 - 0.05));
}

TEST_CASE("a ring of several workers a host is as fast as its slowest link") {
  Cluster cluster = fast_network();
  cluster.workers_per_host = 4;
  cluster.link_bandwidth = 1e7;
  cluster.memory_bandwidth = 1e15;
  cluster.allreduce_overlap = 0;
  const Plan made = plan(cluster, one("ring"));
  // The link between two hosts carries 2 (N-1) messages of payload/N, one after another.
  CHECK(found(made, "all-reduce (ring)").round_s >= 0.1 + 2 * 31.0 / 32 * 0.4 - 0.0126);
  CHECK(found(made, "all-reduce (ring)").round_s <= 0.1 + 2 * 31.0 / 32 * 0.4 + 1e-9);
}

TEST_CASE("messages of a step of an all-reduce share the links of their hosts") {
  Cluster cluster = fast_network();
  cluster.workers_per_host = 4;
  const double link_s = 4e6 / 1e9, memory_s = 4e6 / cluster.memory_bandwidth;
  CHECK(allreduce_links(cluster, Pattern::ring_allreduce)(0, 3, 4, 4e6) == Approx(link_s));
  for (const Pattern pattern : {Pattern::doubling_allreduce, Pattern::halving_allreduce}) {
    const TransferTime links = allreduce_links(cluster, pattern);
    CHECK(links(0, 1, 3, 4e6) == Approx(memory_s));
    CHECK(links(0, 1, 5, 4e6) == Approx(4 * link_s));
  }
}

TEST_CASE("hosts may have any number of workers, and pairs that fold are on one host") {
  Cluster cluster = fast_network();
  cluster.workers_per_host = 6;  // 48 workers, of which 16 fold into 1, 3, ..., 31
  const double link_s = 4e6 / 1e9, memory_s = 4e6 / cluster.memory_bandwidth;
  const TransferTime links = allreduce_links(cluster, Pattern::halving_allreduce);
  CHECK(links(0, 0, 1, 4e6) == Approx(memory_s));
  CHECK(links(0, 1, 0, 4e6) == Approx(memory_s));
  // Of the first hosts, three workers each exchange: 1, 3, 5 and 7, 9, 11 with the places 0 to 5.
  // Over a distance of two places, one message enters host 0 and three enter host 1.
  CHECK(links(0, 1, 5, 4e6) == Approx(memory_s));
  CHECK(links(0, 3, 7, 4e6) == Approx(3 * link_s));
  // Of the last hosts, all six do.
  CHECK(links(0, 46, 44, 4e6) == Approx(memory_s));
  CHECK(links(0, 46, 38, 4e6) == Approx(6 * link_s));
}

TEST_CASE("halving and doubling take the known times on hosts with several workers") {
  Cluster cluster = fast_network();
  cluster.workers_per_host = 4;
  cluster.link_latency_s = 1e-3;
  cluster.link_bandwidth = 1e7;
  cluster.allreduce_overlap = 0;
  const Plan made = plan(cluster, one("ring"));
  const double link_s = 4e6 / 1e7, memory_s = 4e6 / cluster.memory_bandwidth;
  // Of the steps to the next 1, 2, 4, 8 and 16 workers, those from 4 on leave the host, and all of
  // its workers send.
  const double halved_s = 2 * (memory_s * 3 / 4 + 4 * link_s * 7 / 32 + 3e-3);
  CHECK(found(made, "all-reduce (halving)").round_s == Approx(0.1 + halved_s));
  const double doubled_s = 2 * memory_s + 3 * (4 * link_s + 1e-3);
  CHECK(found(made, "all-reduce (doubling)").round_s == Approx(0.1 + doubled_s));
}

TEST_CASE("with large delays, short messages are doubled and long ones are halved") {
  Cluster cluster = fast_network();
  cluster.link_latency_s = 0.02;
  const auto best_allreduce = [&] {
    const Plan made = plan(cluster, one("ring"));
    return std::ranges::find_if(made.candidates, &Candidate::is_allreduce)->exchange;
  };
  CHECK(best_allreduce() == "all-reduce (doubling)");
  cluster.payload_bytes = 4e8;
  CHECK(best_allreduce() == "all-reduce (halving)");
}

TEST_CASE("where the network costs nothing, all-reduce is best") {
  Cluster cluster = fast_network();
  cluster.link_bandwidth = 1e14;
  const Plan made = plan(cluster);
  CHECK(made.candidates.front().is_allreduce());
  CHECK(made.candidates.front().relative_seconds == 1);
}

TEST_CASE("where the network is slow and averages help little, neighbors are best") {
  Cluster cluster = fast_network();
  cluster.hosts = 32;
  cluster.link_bandwidth = 1e6;
  cluster.link_latency_s = 0.1;
  cluster.critical_workers = 1;
  const Plan made = plan(cluster);
  CHECK_FALSE(made.candidates.front().is_allreduce());
  for (std::size_t k = 1; k < made.candidates.size(); ++k) {
    CHECK(made.candidates[k].relative_seconds >= made.candidates[k - 1].relative_seconds);
  }
}

TEST_CASE("seconds to consensus are rounds to consensus times seconds of a round") {
  const Candidate torus = found(plan(fast_network(), one("base2")), "base2");
  CHECK(*torus.consensus_s == Approx(3 * 0.1));  // exact after log2 8 rounds
  CHECK(torus.relative_rounds == Approx(relative_rounds(torus.effective_neighbors, 8, 8)));
  CHECK(relative_rounds(8, 8, 100) == 1);
  CHECK(relative_rounds(1, 8, 1e12) == Approx(8));
}

TEST_CASE("smaller codes make shorter rounds where messages limit them") {
  Cluster cluster = fast_network();
  cluster.link_bandwidth = 1e6;
  PlanOptions options = one("ring");
  options.codecs = {"identity", "bf16"};
  const Plan made = plan(cluster, options);
  double seconds[2] = {};
  for (const Candidate& c : made.candidates) {
    if (!c.is_allreduce()) seconds[c.codec == "bf16" ? 1 : 0] = c.round_s;
  }
  CHECK(seconds[1] == Approx(seconds[0] / 2).epsilon(1e-3));
}

TEST_CASE("with local steps, a message costs what the steps behind it do not hide") {
  Cluster cluster = fast_network();
  cluster.link_bandwidth = 1e7;  // a message takes .8 s, a step .1 s
  PlanOptions options = one("ring");
  options.algorithm = "gasloc";
  const auto round_s = [&](const char* delay) {
    options.parameters = {{"period", "10"}, {"delay", delay}};
    return found(plan(cluster, options), "ring").round_s;
  };
  CHECK(round_s("0") == Approx((10 * 0.1 + 0.8) / 10));
  CHECK(round_s("5") == Approx((10 * 0.1 + 0.3) / 10));
  CHECK(round_s("8") == Approx(0.1));
}

namespace {

/// Four hosts with four workers each.
Cluster four_hosts(double step_s, double payload_bytes) {
  Cluster cluster;
  cluster.hosts = cluster.workers_per_host = 4;
  cluster.link_bandwidth = 1.25e8;
  cluster.link_latency_s = 2e-4;
  cluster.step_s = step_s;
  cluster.payload_bytes = payload_bytes;
  return cluster;
}

const Candidate& best_neighbors(const Plan& plan) {
  for (const Candidate& c : plan.candidates) {
    if (!c.is_allreduce()) return c;
  }
  throw std::runtime_error("no neighbors");
}

}  // namespace

TEST_CASE("with several workers a host, no plan advises one-peer rounds that are a tenth longer") {
  for (const double step_s : {0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1}) {
    for (const char* codec : {"identity", "int8"}) {
      INFO("steps of " << step_s << " s, " << codec);
      PlanOptions options;
      options.codecs = {codec};
      const Plan made = plan(four_hosts(step_s, 2e6), options);
      double least_s = 1e9;
      for (const Candidate& c : made.candidates)
        if (!c.is_allreduce()) least_s = std::min(least_s, c.round_s);
      const Candidate& best = best_neighbors(made);
      const bool is_one_peer = best.exchange == "one_peer_exponential" || best.exchange == "base2";
      CHECK((!is_one_peer || best.round_s <= 1.1 * least_s));
    }
  }
}

TEST_CASE("a plan says which topologies crowd the links of hosts") {
  PlanOptions options;
  options.codecs = {"identity"};
  options.topologies = {"torus2d", "one_peer_exponential", "hierarchical_one_peer"};
  const Plan made = plan(four_hosts(0.04, 2e6), options);
  REQUIRE(made.notes.size() == 1);
  // On the torus, each worker of a row reads the hosts above and below. Over distances of 4 and 8,
  // all workers of a host read another one.
  CHECK_THAT(made.notes.front(),
             Contains("torus2d (identity) 8, one_peer_exponential (identity) 4"));
  CHECK_THAT(made.notes.front(), !Contains("hierarchical_one_peer"));
}

TEST_CASE("short steps and large payloads are planned with codes of 8 bits") {
  const Candidate strong = plan(four_hosts(0.01, 2e6)).candidates.front();
  CHECK(strong.codec == "int8");
  CHECK(strong.round_s <= 0.01 / 0.6);  // an efficiency of .6
  Cluster two = four_hosts(0.4, 1e8);
  two.workers_per_host = 2;
  const Candidate large = plan(two).candidates.front();
  CHECK(large.codec == "int8");
  CHECK(large.round_s <= 1.15 * 0.4);
}

TEST_CASE("where no exchange in every step keeps the speed, local steps are planned") {
  Cluster cluster = fast_network();  // a host a worker, steps of .1 s
  CHECK(plan(cluster).notes.empty());
  cluster.link_bandwidth = 4e4;  // two messages of 10^6 bytes take 50 s
  const Plan made = plan(cluster);
  REQUIRE(made.notes.size() == 2);
  CHECK_THAT(made.notes[1], Contains("gasloc"));
  CHECK(best_neighbors(made).every > 1);
  CHECK(best_neighbors(made).codec == "int8");
  for (const Candidate& c : made.candidates) {
    if (c.every == 1) continue;
    INFO(c.exchange << " " << c.codec << " " << *c.staleness);
    const auto alike = [&](const Candidate& o) {
      return o.every > 1 && o.exchange == c.exchange && o.staleness == c.staleness &&
             o.codec == c.codec;
    };
    CHECK(std::ranges::count_if(made.candidates, alike) == 1);
    PlanOptions options = one(c.exchange);
    options.staleness = {*c.staleness};
    options.codecs = {c.codec};
    options.algorithm = "gasloc";
    const auto seconds_with = [&](std::int64_t every) {
      options.parameters = {{"period", std::to_string(every)},
                            {"changes", c.codec == "identity" ? "false" : "true"}};
      const Candidate same = found(plan(cluster, options), c.exchange);
      return same.round_s * same.relative_rounds;
    };
    const double seconds = c.round_s * c.relative_rounds;
    CHECK(seconds_with(c.every) == Approx(seconds));
    for (const std::int64_t other : {c.every / 2, c.every * 2})
      if (other >= 2 && other <= 64) CHECK(seconds_with(other) >= seconds * (1 - 1e-9));
  }
  PlanOptions named;
  named.topologies = {"ring"};
  CHECK(std::ranges::none_of(plan(cluster, named).candidates,
                             [](const Candidate& c) { return c.every > 1; }));
}

TEST_CASE("with H local steps, weights decay by the H-th power between two exchanges") {
  PlanOptions options = one("ring");
  options.algorithm = "local";
  options.parameters = {{"period", "4"}};
  const Cluster cluster = fast_network();
  const Schedule ring = stencil::ring().make(8);
  const Candidate local = found(plan(cluster, options), "ring");
  CHECK(local.every == 4);
  CHECK(local.effective_neighbors == Approx(effective_neighbors(ring, std::pow(cluster.decay, 4))));
  // A decay of nearly everything leaves one average over three.
  options.parameters = {{"period", "100000"}};
  CHECK(found(plan(cluster, options), "ring").effective_neighbors == Approx(3).epsilon(0.01));
}

TEST_CASE("a plan counts the part of the weights that travels") {
  Cluster cluster = fast_network();
  cluster.link_bandwidth = 1e6;
  PlanOptions options = one("ring");
  const double whole = found(plan(cluster, options), "ring").round_s;
  options.algorithm = "sparta";
  options.parameters = {{"fraction", "0.125"}};
  // awc hides the step behind the message, sparta publishes after the step.
  CHECK(found(plan(cluster, options), "ring").round_s == Approx(0.1 + whole / 8));
}

TEST_CASE("a plan counts the entries that choco sends") {
  Cluster cluster = fast_network();
  cluster.link_bandwidth = 1e6;
  PlanOptions options = one("ring");
  options.algorithm = "choco";
  options.parameters = {{"fraction", "0.01"}};
  // 1 % of 10^6 parameters, an index and a value of 4 bytes each. Two messages share a link.
  CHECK(found(plan(cluster, options), "ring").round_s ==
        Approx(0.1 + 2 * 8 * 1e4 / 1e6).epsilon(0.001));
}

TEST_CASE("a plan counts the codes of the few entries that diloco sends") {
  Cluster cluster = fast_network();
  cluster.link_bandwidth = 1e6;
  PlanOptions options = one("complete");
  options.algorithm = "diloco";
  options.parameters = {{"period", "1"}, {"fraction", "0.01"}};
  const double exact_s = found(plan(cluster, options), "complete").round_s - 0.1;
  options.codecs = {"int2"};
  const double coded_s = found(plan(cluster, options), "complete").round_s - 0.1;
  // Of 10^4 entries: 14 bits, 8 bytes for each 256, 4 bytes for each 4096 elements.
  CHECK(coded_s / exact_s == Approx(18808 / 80008.0));
}

TEST_CASE("a plan counts the exact averages of gossip_pga in place of neighbors") {
  Cluster cluster = fast_network();
  cluster.link_bandwidth = 1e7;
  PlanOptions options = one("ring");
  options.algorithm = "gossip_pga";
  const double neighbors_s = 0.1 + 2 * 0.4, allreduce_s = 0.1 + 2 * 7.0 / 8 * 0.4;
  for (const int period : {1, 4, 1000}) {
    options.parameters = {{"period", std::to_string(period)}};
    const Plan made = plan(cluster, options);
    const Candidate& ring = found(made, "ring");
    CHECK(ring.round_s == Approx(neighbors_s + (allreduce_s - neighbors_s) / period));
    CHECK(ring.waiting_share == Approx(1 - 0.1 / ring.round_s));  // steps take 0.1 s
  }
}

TEST_CASE("a plan leaves out what its algorithm does not run on or with") {
  PlanOptions options = one("ring");
  options.topologies = {"ring", "complete"};
  options.codecs = {"identity", "int4"};
  options.algorithm = "diloco";
  const Plan made = plan(fast_network(), options);
  REQUIRE(made.left_out.size() == 1);
  CHECK_THAT(made.left_out.front(), Contains("diloco") && Contains("complete"));
  CHECK(
      std::ranges::none_of(made.candidates, [](const Candidate& c) { return c.codec == "int4"; }));
  options.parameters = {{"changes", "true"}};
  const Plan coded = plan(fast_network(), options);
  CHECK(
      std::ranges::any_of(coded.candidates, [](const Candidate& c) { return c.codec == "int4"; }));
}

TEST_CASE("a plan for a rule of sites has topologies of sites") {
  Cluster cluster = fast_network();
  cluster.hosts = 2;
  cluster.workers_per_host = 2;
  PlanOptions options = one("");
  options.topologies = {};
  options.algorithm = "awc_gasloc";
  const Plan made = plan(cluster, options);
  CHECK(made.left_out.empty());
  CHECK_NOTHROW(found(made, "sites"));
  CHECK_NOTHROW(found(made, "hierarchical_one_peer"));
}

TEST_CASE("a plan leaves out the staleness at which its algorithm does not run") {
  PlanOptions options = one("base2");
  options.algorithm = "push_sum";
  options.staleness = {0, 1};
  const Plan made = plan(fast_network(), options);
  CHECK(found(made, "base2").staleness == 0);
  CHECK(std::ranges::none_of(made.candidates, [](const Candidate& c) { return c.staleness == 1; }));
  REQUIRE(made.left_out.size() == 1);
  CHECK_THAT(made.left_out.front(), Contains("base2 at staleness 1") && Contains("push_sum"));
  options.topologies = {"ring"};
  CHECK(plan(fast_network(), options).left_out.empty());
}

TEST_CASE("a plan takes the weights with which its algorithm runs") {
  Cluster cluster = fast_network();
  cluster.hosts = 16;
  const auto rounds = [&](const char* algorithm) {
    PlanOptions options = one("torus2d");
    options.algorithm = algorithm;
    const Candidate torus = found(plan(cluster, options), "torus2d");
    return *torus.consensus_s / torus.round_s;
  };
  // The gap of a torus of 4x4 is 0.4. d2 runs with lazy weights, whose gap is half of it.
  CHECK(rounds("atc") == Approx(std::ceil(std::log(1e-3) / std::log(0.6))));
  CHECK(rounds("d2") == Approx(std::ceil(std::log(1e-3) / std::log(0.8))));
}

TEST_CASE("unknown names are refused, and what does not fit is left out") {
  PlanOptions options = one("ring");
  options.codecs = {"int7"};
  CHECK_THROWS_WITH(plan(fast_network(), options), Contains("int7"));
  options = one("ring");
  options.algorithm = "allreduce";
  CHECK_THROWS_WITH(plan(fast_network(), options), Contains("does not exchange with neighbors"));
  Cluster seven = fast_network();
  seven.hosts = 7;
  const Plan made = plan(seven, one("hypercube"));
  REQUIRE(made.left_out.size() == 1);
  CHECK_THAT(made.left_out.front(), Contains("hypercube"));
}

TEST_CASE("sites keep their speed with so many steps between two exchanges") {
  PlannedSites sites{.step_s = 0.05, .payload_bytes = 1e6, .sites = {}};
  for (int k = 0; k < 3; ++k) sites.sites.push_back({.bandwidth = 1e6, .latency_s = 0.02});
  // Two messages of 1 s at the full rate, and three ways of 0.04 s.
  const SitePlan whole = plan_sites(sites, "ring", {"identity"})[0];
  CHECK(whole.exchange_s == Approx(4.12));
  CHECK(whole.every_waiting == 1566);  // 19 x 82.4, rounded up
  CHECK(whole.every_delayed == 80);    // 0.95 x 83.4, rounded up
  CHECK(whole.every_never == 83);
  // What the formulas of speed say of these, and of one step less.
  const auto speed = [&](std::int64_t every, std::int64_t delay) {
    const double steps_s = 0.05 * static_cast<double>(every);
    return steps_s / (steps_s + std::max(0.0, 4.12 - 0.05 * static_cast<double>(delay)));
  };
  CHECK((speed(1566, 0) >= 0.95 && speed(1565, 0) < 0.95));
  CHECK((speed(80, 79) >= 0.95 && speed(79, 78) < 0.95));
  // The slowest link counts: site 0 gives and gets two messages at a tenth of the rate.
  sites.sites[0].bandwidth = 1e5;
  CHECK(plan_sites(sites, "ring", {"identity"})[0].exchange_s == Approx(40.12));
  // A matching has one message in each direction, or two of two exchanges.
  const auto pairs = plan_sites(sites, "random_matchings", {"identity", "int4"});
  REQUIRE(pairs.size() == 1);  // int4 sends differences
  CHECK(pairs[0].exchange_s == Approx(20.12));
  CHECK(pairs[0].every_never == 803);  // 40.12 s
  CHECK_THROWS_WITH(plan_sites(sites, "directed_ring", {"int8"}), Contains("are directed"));
  const std::vector<SitePlan> coded = plan_sites(sites, "complete", {"bf16", "int8", "int4"});
  CHECK(coded[0].message_bytes == Approx(5e5).epsilon(0.001));
  CHECK(coded[1].message_bytes == Approx(2.5e5 * (1 + 1.0 / 64)).epsilon(0.001));
  CHECK(coded[1].every_never.has_value());
  CHECK_FALSE(coded[2].every_never);  // it sends differences
  // Of 250,000 parameters, 2506.75 without its fraction: a count, 4 bytes for a place and 4 for a
  // value.
  const SitePlan sparse = plan_sites(sites, "ring", {"sparse=0.010027"})[0];
  CHECK(sparse.message_bytes == 8 + 8 * 2506);
  CHECK_FALSE(sparse.every_never);
  CHECK(plan_sites(sites, "random_matchings", {"sparse=0.01"}).empty());
  CHECK_THROWS_WITH(plan_sites(sites, "ring", {"sparse=0.25"}), Contains("take a smaller part"));
  const auto usual = [&] {
    std::vector<std::string> names;
    for (const SitePlan& plan : plan_sites(sites, "ring", {})) names.push_back(plan.codec);
    return names;
  };
  std::vector<std::string> names = {"identity", "bf16", "int8", "int4", "int2", "sparse=0.01"};
  CHECK(usual() == names);
  sites.payload_bytes = 4 * 8;  // one entry of 8 parameters takes 16 bytes, as bf16 does
  names.pop_back();
  CHECK(usual() == names);
  for (const char* none : {"fp4", "sparse", "sparse=0", "sparse=1", "sparse=0.1x", "qsgd4"})
    CHECK_THROWS_WITH(plan_sites(sites, "ring", {none}),
                      Contains("sites take identity") && Contains("int2 or sparse=FRACTION"));
  CHECK_THROWS_WITH(plan_sites(sites, "hypercube", {"int8"}), Contains("hypercube"));
}
