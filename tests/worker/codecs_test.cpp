#include <cmath>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/scenarios/on_threads.hpp"

using namespace fast;

TEST_CASE("every scenario of codecs holds on threads") {
  testing::hold_on_threads(testing::scenarios_of_codecs());
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
