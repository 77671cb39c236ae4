#include <cstdlib>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/scenarios/scenarios.hpp"

using namespace fast;

namespace {

/// Sanitizers take up to ten times as long: FAST_FEW_WORKER_COUNTS leaves one count, for them.
std::vector<int> worker_counts() {
  if (std::getenv("FAST_FEW_WORKER_COUNTS") != nullptr) return {3};
  return {1, 2, 3, 4, 6};
}

}  // namespace

TEST_CASE("every scenario holds on threads") {
  for (const int workers : worker_counts()) {
    for (const auto& scenario : testing::scenarios()) {
      INFO(scenario.name << " on " << workers << " workers");
      CHECK_NOTHROW(local::run(workers, scenario.run));
    }
  }
}

TEST_CASE("two runs at staleness 0 give the same bits, with any codec") {
  for (const auto codec : testing::codecs_of_weights()) {
    const auto train = [codec](std::uint64_t seed) {
      std::vector<float> result(1000);
      local::run(5, [&](const Group& group) {
        std::vector<float> x(1000);
        for (std::size_t e = 0; e < x.size(); ++e) x[e] = std::sin(static_cast<float>(e + 7));
        WorkerOptions options;
        options.codec = codec::by_name(codec);
        options.codec.seed = seed;
        Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
        for (int t = 0; t < 50; ++t) {
          worker.step([&] {
            for (float& value : x) {
              value -= 0.1F * (value - static_cast<float>(group.rank()) * 0.3F);
            }
          });
        }
        if (group.rank() == 3) result = x;
      });
      return result;
    };
    INFO(codec);
    CHECK(train(1) == train(1));
    CHECK((train(1) == train(2)) != codec::by_name(codec).stochastic);
  }
}

TEST_CASE("local::run reports the first error and refuses nobody") {
  CHECK_THROWS_WITH(local::run(3,
                               [](const Group& group) {
                                 if (group.rank() == 1) fail(ErrorKind::data, "no data here");
                                 group.barrier(Deadline(Seconds(20)), "meeting");
                               }),
                    "no data here");
  CHECK_THROWS_AS(local::run(0, [](const Group&) {}), Error);
}

TEST_CASE("a worker on a worker count that the topology does not fit is refused") {
  const Topology pair("pair", std::vector<std::vector<int>>{{1}, {0}});
  std::vector<float> x(3);
  CHECK_THROWS_AS(local::run(3,
                             [&](const Group& group) {
                               std::vector<float> mine(3);
                               Worker worker(group, pair, {view_of("x", std::span(mine))});
                             }),
                  Error);
}
