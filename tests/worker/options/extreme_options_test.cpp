// Options with values at the ends of their ranges and beyond: each one is refused in one line, or
// means what it says.
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <cmath>

#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/constant.hpp"
#include "worker/options/extreme_values.hpp"
#include "worker/worker_options.hpp"

using namespace fast;
using options::OptionSpec;
using options::OptionTable;

namespace {

constexpr int extreme_rounds = 6;
constexpr double shortest_wait_s = 5;  ///< shorter waits may end before the neighbor comes

using Choose = std::function<void(WorkerOptions&)>;

/// Two workers that make no steps. Returns the error, which must be one of the kinds that the
/// values of options have; empty when the run came to its end.
std::string error_of_extreme_run(const TopologyRule& topology, const Choose& choose) {
  std::string why;
  try {
    local::run(2, [&](const Group& group) {
      WorkerOptions options = testing::quick();
      choose(options);
      testing::Constant c(group, topology, group.rank(), options);
      c.idle(extreme_rounds);
      c.worker.await_finish();
      const bool waits =
          options.staleness == 0 && options.deadline.count() >= shortest_wait_s &&
          options.suspect_after.value_or(options.deadline).count() >= shortest_wait_s;
      testing::expect(c.worker.round() == extreme_rounds, "all rounds were made");
      if (waits) testing::expect(c.worker.stats().skipped == 0, "nobody was left out");
      for (const double x : c.x) testing::expect(std::isfinite(x), "the weights are finite");
    });
  } catch (const Error& error) {
    why = error.what();
    const bool expected = error.kind() == ErrorKind::argument ||
                          error.kind() == ErrorKind::deadline || error.kind() == ErrorKind::numeric;
    if (!expected) FAIL_CHECK("an error of another kind: " << why);
    CHECK(why.find('\n') == std::string::npos);
  }
  return why;
}

/// "period=8 rate=0.7": the names.
std::vector<std::string> keys_of(const algorithm::Rule& rule) {
  std::vector<std::string> keys;
  const std::string& text = rule.traits().parameters;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t equal = text.find('=', at);
    if (equal == std::string::npos) break;
    keys.push_back(text.substr(at, equal - at));
    const std::size_t space = text.find(' ', equal);
    at = space == std::string::npos ? text.size() : space + 1;
  }
  return keys;
}

}  // namespace

TEST_CASE("each option of a worker at each end of its range is refused or means what it says") {
  WorkerOptions defaults;
  OptionTable names;
  add_rows(names, defaults);
  int runs = 0, refused = 0;
  for (const OptionSpec& named : names.rows()) {
    for (const std::string& text : testing::extremes_of(named)) {
      INFO(named.name << " = " << text);
      const std::string why = error_of_extreme_run(stencil::ring(), [&](WorkerOptions& options) {
        OptionTable table;
        add_rows(table, options);
        table.set(table.at(named.name), {text}, named.name);
      });
      ++runs;
      if (why.empty()) continue;
      ++refused;
      CHECK_THAT(why, ContainsSubstring(named.name) || ContainsSubstring("deadline"));
    }
  }
  CHECK(runs > 60);
  CHECK(refused > 10);
}

TEST_CASE("each option of each rule at each end of its range is refused or the run stays finite") {
  int runs = 0;
  for (const std::string_view name : algorithm::names()) {
    for (const std::string& key : keys_of(algorithm::by_name(name))) {
      for (const auto& texts : {testing::extreme_integers(), testing::extreme_numbers()}) {
        for (const std::string& text : texts) {
          INFO(name << " " << key << "=" << text);
          error_of_extreme_run(testing::topology_for(name), [&](WorkerOptions& options) {
            options.algorithm = algorithm::by_name(name, {{key, text}});
            options.not_finite = NotFinite::heal;
          });
          ++runs;
        }
      }
    }
  }
  CHECK(runs > 500);
}

TEST_CASE("periods whose product is beyond all integers are waited for like any other long one") {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  local::run(2, [&](const Group& group) {
    WorkerOptions options = testing::quick();
    options.mix_every = huge;
    options.algorithm = algorithm::local();  // its own period is 8
    testing::Constant c(group, stencil::ring(), group.rank(), options);
    c.idle(40);
    testing::expect(c.x[0] == group.rank(), "no combination in 40 rounds");
    testing::expect(c.worker.round() == 40, "rounds are counted");
    c.worker.await_finish();
  });
}

TEST_CASE("a delay just below a huge period publishes at the end of the period's first round") {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  local::run(2, [&](const Group& group) {
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::gasloc({.period = huge, .delay = huge - 1});
    testing::Constant c(group, stencil::ring(), group.rank(), options);
    c.idle(10);
    testing::expect(c.x[0] == group.rank(), "no combination in 10 rounds");
    c.worker.await_finish();
  });
}
