#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <map>

#include "sites/site_weights.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::sites;

namespace {
const std::vector<std::string> five{"a", "b", "c", "d", "e"};
}

TEST_CASE("sites with equal samples have the weights of the topology") {
  for (const TopologyRule& rule : {stencil::ring(), stencil::complete(), stencil::grid1d()}) {
    const Topology topology = rule.make(5).at(0);
    for (int i = 0; i < 5; ++i) {
      const MixingRow row = mixing_row(topology, i);
      const auto edges = edges_of(rule, five, five[static_cast<std::size_t>(i)], 0);
      REQUIRE(edges.size() == row.neighbors.size());
      for (std::size_t k = 0; k < edges.size(); ++k) {
        CHECK(edges[k].site == five[static_cast<std::size_t>(row.neighbors[k])]);
        CHECK(weight_for_samples(edges[k].weight, 3, 3) == row.weights[k]);
      }
    }
  }
  CHECK(edges_of(stencil::ring(), {"a"}, "a", 0).empty());
}

TEST_CASE("with other samples the weighted mean stays, and no weight is negative") {
  const std::map<std::string, double> samples{
      {"a", 1}, {"b", 2.5}, {"c", 0.25}, {"d", 8}, {"e", 3}};
  for (const TopologyRule& rule : {stencil::ring(), stencil::complete(), stencil::grid1d()}) {
    std::map<std::string, double> columns;
    for (const std::string& i : five) {
      double self = 1;
      for (const SiteEdge& edge : edges_of(rule, five, i, 0)) {
        const double weight = weight_for_samples(edge.weight, samples.at(i), samples.at(edge.site));
        self -= weight;
        columns[edge.site] += samples.at(i) * weight;
      }
      CHECK(self >= 0);
      columns[i] += samples.at(i) * self;
    }
    for (const std::string& j : five) CHECK(columns[j] == Approx(samples.at(j)).epsilon(1e-14));
  }
}

TEST_CASE("topologies that do not fit the rule on any number of sites are refused") {
  const algorithm::RuleTraits gasloc = algorithm::gasloc().traits(),
                              noloco = algorithm::noloco().traits(),
                              diloco = algorithm::diloco().traits();
  CHECK_NOTHROW(require_any_number(stencil::ring(), gasloc));
  CHECK_NOTHROW(require_any_number(schedule::random_matchings(), gasloc));
  CHECK_NOTHROW(require_any_number(schedule::random_matchings(), noloco));
  CHECK_NOTHROW(require_any_number(stencil::complete(), diloco));
  CHECK_THROWS_AS(require_any_number(stencil::ring(), noloco), Error);
  CHECK_THROWS_AS(require_any_number(stencil::ring(), diloco), Error);
  CHECK_THROWS_AS(require_any_number(stencil::hypercube(), gasloc), Error);
  CHECK_THROWS_AS(require_any_number(stencil::torus2d({2, 2}), gasloc), Error);
  CHECK_THROWS_AS(require_any_number(stencil::ring(true), gasloc), Error);
}
