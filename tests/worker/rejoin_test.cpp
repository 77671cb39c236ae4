#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/quick.hpp"

using namespace fast;
using testing::expect;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// 100 rounds towards 1; in round 7 worker 1's step ends with `bad` weights and returns `loss`.
void train_with_an_ill_worker(const Group& group, const std::string& rule, std::int64_t staleness,
                              double bad, double loss) {
  std::vector<double> x(100, 0.0);
  int cleaned = 0;
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::by_name(rule);
  options.staleness = staleness;
  options.not_finite = NotFinite::heal;
  options.on_healed = [&] { ++cleaned; };
  Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
  for (int t = 0; t < 100; ++t) {
    const bool ill = group.rank() == 1 && t == 7;
    worker.step(
        [&] {
          for (double& value : x) value += 0.3 * (1 - value);
          if (ill) x[57] = bad;
          return ill ? loss : 0.5;
        },
        {.learning_rate = 0.3});
  }
  worker.await_finish();
  expect(worker.stats().healed == (group.rank() == 1 ? 1 : 0), "healed in another round");
  expect(cleaned == worker.stats().healed, "the optimizer was not told");
  for (const double value : x)
    expect(std::abs(value - 1) < 0.01,
           fmt::format("{} {} {} {}: {}", rule, staleness, bad, loss, value));
}

}  // namespace

TEST_CASE("a worker whose weights or loss are not finite is healed and infects nobody") {
  for (const int staleness : {0, 2}) {
    for (const char* rule : {"awc", "atc"}) {
      local::run(3, [&](const Group& g) {
        train_with_an_ill_worker(g, rule, staleness, not_a_number, 0.5);
      });
      local::run(
          3, [&](const Group& g) { train_with_an_ill_worker(g, rule, staleness, -HUGE_VAL, 0.5); });
      local::run(3, [&](const Group& g) {
        train_with_an_ill_worker(g, rule, staleness, 0.5, not_a_number);
      });
    }
  }
}
