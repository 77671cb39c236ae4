#include <fast/core/error.hpp>
#include <fast/mixing/check.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <fast/topology_tools/save.hpp>

#include "support/catch.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

void check_same(const Schedule& saved, const Schedule& loaded, WeightRule rule, bool lazy) {
  REQUIRE(loaded.workers() == saved.workers());
  REQUIRE(loaded.period() == saved.period());
  for (std::int64_t t = 0; t < saved.period(); ++t) {
    CHECK(mixing_matrix(loaded.at(t)) == mixing_matrix(saved.at(t), rule, lazy));
  }
}

}  // namespace

TEST_CASE("what is saved is loaded again with the same weights to the last bit") {
  for (const TopologyName& name : topology_names()) {
    for (const int workers : {1, 2, 7, 16}) {
      INFO(name.name << " with " << workers << " workers");
      std::optional<Schedule> schedule;
      try {
        schedule = topology_by_name(name.name).make(workers);
      } catch (const Error&) {
        continue;  // a number of workers that the name does not fit
      }
      if (schedule->period() == 0) continue;
      for (const bool lazy : {false, true}) {
        const std::string text = topology_text(*schedule, "a.toml", WeightRule::automatic, lazy);
        const TopologyRule loaded = parse_topology(text, "a.toml");
        CHECK(loaded.natural_workers() == workers);
        check_same(*schedule, loaded.make(workers), WeightRule::automatic, lazy);
        CHECK(loaded.make(workers).name() == schedule->name());
        if (!schedule->is_static() || workers == 1) continue;
        const std::string matrix = topology_text(*schedule, "a.mtx", WeightRule::automatic, lazy);
        check_same(*schedule, parse_topology(matrix, "a.mtx").make(workers), WeightRule::automatic,
                   lazy);
      }
    }
  }
}

TEST_CASE("weights of columns are saved for push-sum") {
  const Schedule star = stencil::exponential().make(6);
  const Topology path("path", {{}, {0}, {0, 1}});
  for (const Schedule& schedule : {star, Schedule(path)}) {
    const std::string text = topology_text(schedule, "a.toml", WeightRule::uniform_columns);
    check_same(schedule, parse_topology(text, "a.toml").make(schedule.workers()),
               WeightRule::uniform_columns, false);
  }
}

TEST_CASE("fastest mixing weights keep their gap through a file") {
  const Topology fastest = fastest_mixing(stencil::grid2d({3, 3}).make(9).at(0));
  const Schedule loaded = parse_topology(topology_text(fastest, "f.toml"), "f.toml").make(9);
  CHECK(analyze(loaded).gap->value == Approx(analyze(fastest).gap->value).margin(1e-12));
  CHECK(analyze(loaded).gap->value > analyze(stencil::grid2d({3, 3}).make(9)).gap->value);
  CHECK(check_mixing(loaded).findings.empty());
}

TEST_CASE("what cannot be saved says why") {
  const Schedule ring = stencil::ring().make(4);
  CHECK_THROWS_WITH(topology_text(ring, "a.json"), Contains("a.json does not end in .toml"));
  const Schedule endless = topology_by_name("equidyn").make(4);
  CHECK_THROWS_WITH(topology_text(endless, "a.toml"), Contains("never repeats"));
  const Schedule base = topology_by_name("base2").make(5);
  CHECK_THROWS_WITH(topology_text(base, "a.mtx"), Contains("write a .toml file"));
}
