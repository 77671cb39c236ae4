// sparta: the average of a random part of the entries in each step.
#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/rules/outer_run.hpp"

using namespace fast;
using testing::outer_disagreement;
using testing::outer_options;

TEST_CASE("sparta averages one entry of each run, and all entries in time") {
  constexpr std::size_t run_length = 8, elements = 3001;
  local::run(3, [&](const Group& group) {
    std::vector<float> x(elements, static_cast<float>(group.rank()));
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                  outer_options(algorithm::sparta({.fraction = 1.0 / run_length, .seed = 4})));
    worker.step([] {});
    std::size_t averaged = 0;
    for (std::size_t r = 0; r * run_length < elements; ++r) {
      const std::size_t begin = r * run_length, end = std::min(begin + run_length, elements);
      const auto at_mean = std::count_if(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                         x.begin() + static_cast<std::ptrdiff_t>(end),
                                         [](float value) { return std::abs(value - 1) < 1e-6F; });
      averaged += static_cast<std::size_t>(at_mean);
      // Worker 1 stands at the mean.
      if (group.rank() != 1) testing::expect(at_mean == 1, fmt::format("run {}: {}", r, at_mean));
    }
    if (group.rank() != 1) testing::expect(averaged == 376, "entries averaged");
    testing::expect(worker.stats().bytes_sent == 2.0 * (8 + 4 * 376), "bytes of a round");
    for (int t = 0; t < 200; ++t) worker.step([] {});
    for (const float value : x) testing::expect(std::abs(value - 1) < 1e-6F, "all at the mean");
  });
}

// Entries that travel are rounded, and so is what the pull is taken from: a worker's own entry is
// not. 1 + r/512 lies between values of bf16, which are 1/128 apart.
TEST_CASE("sparta in 16 bits adds the difference of rounded entries to the exact one") {
  constexpr std::size_t elements = 4000;
  for (const char* codec : {"bf16", "fp16", "bf16_stochastic"}) {
    std::vector<std::vector<double>> ends(3);
    local::run(3, [&](const Group& group) {
      std::vector<double> x(elements, 1 + group.rank() / 512.0);
      Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                    outer_options(algorithm::sparta({.fraction = 1.0 / 8, .seed = 4}), codec));
      for (int t = 0; t < 200; ++t) worker.step([] {});
      testing::expect(worker.stats().bytes_sent == 200.0 * 2 * (8 + 2 * 500), "bytes");
      ends[static_cast<std::size_t>(group.rank())] = x;
    });
    const bool bf16 = codec == std::string_view("bf16");
    for (std::size_t e = 0; e < elements; ++e) {
      const double mean = (ends[0][e] + ends[1][e] + ends[2][e]) / 3;
      REQUIRE(std::abs(mean - (1 + 1 / 512.0)) < 1e-14);
      // bf16: all three round to 1, and nobody moves. fp16 has all three values: 1/1024 apart.
      if (bf16) REQUIRE(ends[0][e] == 1);
      if (bf16) REQUIRE(ends[2][e] == 1 + 2 / 512.0);
    }
    if (codec == std::string_view("fp16")) CHECK(outer_disagreement(ends, {0, 1, 2}) < 2e-3);
  }
}

TEST_CASE("sparta at staleness 3 takes the entries of the message that it reads") {
  local::run(4, [&](const Group& group) {
    std::vector<double> x;
    for (int e = 0; e < 500; ++e) x.push_back(group.rank() + 10 * e);
    WorkerOptions options = outer_options(algorithm::sparta({.fraction = 0.1}));
    options.staleness = 3;
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, options);
    for (int t = 0; t < 3000; ++t) worker.step([] {});
    worker.await_finish();
    for (int e = 0; e < 500; ++e) {  // else an entry was taken for another
      const double value = x[static_cast<std::size_t>(e)] - 10 * e;
      testing::expect(value >= 0 && value <= 3, "between all starts");
    }
    testing::expect(worker.consensus_distance() < 0.5, "they agree");
  });
}
