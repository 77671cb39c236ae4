// What --topology auto takes by a plan: by figures of a plan, and by closed forms of a cluster.
#include "fast_train/automatic_topology.hpp"

#include <fast/topology/load.hpp>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::simulation;
using fast_train::advised;
using fast_train::planned_topology;

namespace {

Candidate planned(const std::string& name, double round_s, double consensus_s,
                  double relative_rounds = 1) {
  Candidate c;
  c.exchange = name;
  c.staleness = 0;
  c.round_s = round_s;
  c.consensus_s = consensus_s;
  c.relative_rounds = relative_rounds;
  return c;
}

/// Beside "usual": a second a round, ten seconds to agree.
std::string chosen(const std::vector<Candidate>& others) {
  Plan plan{{planned("usual", 1, 10)}, {}};
  std::vector<std::string> names = {"usual"};
  for (const Candidate& each : others) {
    plan.candidates.insert(plan.candidates.begin(), each);
    names.push_back(each.exchange);
  }
  return advised(plan, "usual", names).name;
}

PlanOptions exact_awc() {
  PlanOptions options;
  options.staleness = {0};
  options.codecs = {"identity"};
  return options;
}

/// A host a worker. A message takes 4 ms.
Cluster quick_links(int hosts) {
  Cluster cluster;
  cluster.hosts = hosts;
  cluster.link_bandwidth = 1e9;
  cluster.link_latency_s = 0;
  cluster.step_s = 0.1;
  cluster.payload_bytes = 4e6;
  return cluster;
}

}  // namespace

TEST_CASE("rounds that are a tenth shorter replace the usual topology, if accuracy comes sooner") {
  CHECK(chosen({planned("other", 0.89, 10)}) == "other");
  CHECK(chosen({planned("other", 0.91, 10)}) == "usual");
  CHECK(chosen({planned("other", 0.89, 100)}) == "other");
  CHECK(chosen({planned("other", 0.5, 10, 1.79)}) == "other");
  CHECK(chosen({planned("other", 0.5, 10, 1.81)}) == "usual");
}

TEST_CASE("workers that agree in a tenth less time replace it, if nothing else takes longer") {
  CHECK(chosen({planned("other", 1, 8.9)}) == "other");
  CHECK(chosen({planned("other", 1, 9.1)}) == "usual");
  CHECK(chosen({planned("other", 1.009, 8.9)}) == "other");
  CHECK(chosen({planned("other", 1.02, 1)}) == "usual");
  CHECK(chosen({planned("other", 1, 1, 1.02)}) == "usual");
}

TEST_CASE("of several that are faster, accuracy decides, then agreement, then the order of names") {
  CHECK(chosen({planned("a", 0.8, 10), planned("b", 0.7, 10)}) == "b");
  CHECK(chosen({planned("a", 0.7, 9), planned("b", 0.7, 8)}) == "b");
  CHECK(chosen({planned("a", 0.7, 8), planned("b", 0.7, 8)}) == "a");
}

TEST_CASE(
    "a topology without consensus is replaced, an all-reduce or an unknown name replaces none") {
  Plan plan{{planned("usual", 1, 10), planned("other", 1, 9.9)}, {}};
  plan.candidates.front().consensus_s.reset();
  CHECK(advised(plan, "usual", {"usual", "other"}).name == "other");
  CHECK(advised(plan, "other", {"usual", "other"}).name == "other");
  plan.candidates.push_back(planned("all-reduce (ring)", 0.1, 0.1));
  plan.candidates.back().staleness.reset();
  CHECK(advised(plan, "other", {"other", "all-reduce (ring)", "nonsense"}).name == "other");
  const auto unplanned = advised(plan, "third", {"third", "other"});
  CHECK(unplanned.name == "third");
  CHECK_THAT(unplanned.reason, ContainsSubstring("cannot be planned"));
}

TEST_CASE("where messages hide behind steps, the workers that agree in fewer rounds are taken") {
  // A ring of 3 is complete: it averages exactly in one round. base2 needs several.
  const auto three = planned_topology(quick_links(3), "base2", {"ring"}, exact_awc());
  CHECK(three.name == "ring");
  CHECK_THAT(three.reason,
             ContainsSubstring("predicted 100 ms a round, 100 ms to agree, with base2 "
                               "100 ms a round"));
  // With 8 workers, base2 averages exactly in log2 8 rounds, a ring never does.
  const auto eight =
      planned_topology(quick_links(8), "base2", fast_train::compared_topologies(), exact_awc());
  CHECK(eight.name == "base2");
  CHECK(eight.reason == "predicted 100 ms a round, 300 ms to agree; no other one is 10 % faster");
}

TEST_CASE("where links limit rounds, fewer payloads on them are taken") {
  Cluster cluster = quick_links(8);
  cluster.link_bandwidth = 1e7;  // .4 s a payload
  const auto found = planned_topology(cluster, "ring", {"base2"}, exact_awc());
  CHECK(found.name == "base2");
  CHECK_THAT(found.reason, ContainsSubstring("predicted 400 ms a round, 1.2 s to agree, with ring "
                                             "800 ms a round"));
  // A complete graph of 3 would agree in .8 s in place of 1.2 s, but its rounds are twice as long.
  cluster.hosts = 3;
  CHECK(planned_topology(cluster, "base2", {"ring"}, exact_awc()).name == "base2");
  // Four workers a host: two payloads a host in 7 of base2's rounds against one in a round of
  // hosts.
  cluster.hosts = 4;
  cluster.workers_per_host = 4;
  CHECK(planned_topology(cluster, "base2", {"hierarchical_one_peer"}, exact_awc()).name ==
        "hierarchical_one_peer");
}

TEST_CASE("four hosts with four workers each never get rounds that crowd their links") {
  Cluster cluster = quick_links(4);
  cluster.workers_per_host = 4;
  cluster.payload_bytes = 2e6;
  cluster.link_bandwidth = 1.25e8;
  for (const double step_s : {0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1}) {
    INFO("steps of " << step_s << " s");
    cluster.step_s = step_s;
    PlanOptions options = exact_awc();
    options.topologies = fast_train::compared_topologies();
    const Plan made = plan(cluster, options);
    const auto round_s = [&](const std::string& name) {
      const auto found = std::ranges::find(made.candidates, name, &Candidate::exchange);
      return found == made.candidates.end() ? 1e9 : found->round_s;
    };
    const auto chosen =
        planned_topology(cluster, "hierarchical_one_peer", options.topologies, exact_awc());
    CHECK(round_s(chosen.name) <= 1.1 * round_s("hierarchical_one_peer"));
  }
  cluster.step_s = 0.04;
  // All workers of a host send 2 MB in half of the rounds: 64 ms in place of 40.
  CHECK_THAT(
      planned_topology(cluster, "hierarchical_one_peer", {"one_peer_exponential"}, exact_awc())
          .reason,
      ContainsSubstring("predicted 40 ms a round, 200 ms to agree; no other one is 10 % "
                        "faster"));
}

TEST_CASE("what is compared has a name that exists") {
  for (const std::string& name : fast_train::compared_topologies()) {
    CHECK_NOTHROW(topology_on_hosts(name, {0, 0, 2, 2}).make(4));
  }
}
