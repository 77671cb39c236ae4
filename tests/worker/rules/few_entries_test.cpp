// diloco that sends its largest entries, in the code of a codec.
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/constant.hpp"

using namespace fast;

namespace {

Worker worker_of_few(const Group& group, const algorithm::DilocoOptions& few, const char* codec,
                     const std::vector<TensorView>& views) {
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::diloco(few);
  options.codec = codec::by_name(codec);
  return Worker(group, stencil::complete(), views, options);
}

double goal_of_few(int rank) { return Rng(mix_seed(5, static_cast<std::uint64_t>(rank))).normal(); }

}  // namespace

TEST_CASE("few coded entries keep diloco's replicas the same, which come near the mean optimum") {
  constexpr int workers = 5;
  double mean = 0;
  for (int w = 0; w < workers; ++w) mean += goal_of_few(w) / workers;
  for (const char* codec : {"identity", "fp16", "int8", "int4", "int2"}) {
    INFO(codec);
    std::vector<std::vector<double>> ends(workers, std::vector<double>(700));
    local::run(workers, [&](const Group& group) {
      std::vector<double>& x = ends[static_cast<std::size_t>(group.rank())];
      Rng rng(9);
      for (double& value : x) value = rng.normal();
      Worker worker =
          worker_of_few(group, {.period = 6, .rate = 0.3, .momentum = 0.99, .fraction = 0.3}, codec,
                        {view_of("x", std::span(x))});
      for (int t = 0; t < 600; ++t) {
        worker.step([&] {
          for (double& value : x) value -= 0.05 * (value - goal_of_few(group.rank()));
        });
      }
    });
    for (std::size_t e = 0; e < ends[0].size(); ++e) {
      for (const auto& x : ends) REQUIRE(std::abs(x[e] - ends[0][e]) < 1e-13);  // roundings
      REQUIRE(std::abs(ends[0][e] - mean) < 0.25);
    }
  }
}

// Both workers move by the same; 2 bits make ±0.75 and ±3.5 of it. Half of the error comes with the
// next message, whose code is exact.
TEST_CASE("what the code of diloco's entries loses is sent later, momentum times") {
  local::run(2, [](const Group& group) {
    std::vector<double> x(4);
    Worker worker = worker_of_few(group, {.period = 1, .rate = 1, .momentum = 0.5, .fraction = 1},
                                  "int2", {view_of("x", std::span(x))});
    worker.step([&] { x = {0.5, -1, 3, -4}; });
    testing::expect(x == std::vector<double>{0.75, -0.75, 3.5, -3.5}, "the code");
    worker.step([] {});
    testing::expect(x == std::vector<double>{0.625, -0.875, 3.25, -3.75}, "half of its error");
    worker.step([] {});
    testing::expect(x == std::vector<double>{0.625, -0.875, 3.25, -3.75}, "nothing is left");
  });
}

TEST_CASE("diloco's entries are coded across tensors of several types") {
  local::run(3, [](const Group& group) {
    std::vector<double> a(300);
    std::vector<float> b(4100), buffer(5, static_cast<float>(group.rank()));
    std::vector<BFloat16> c(9);
    Worker worker = worker_of_few(
        group, {.period = 1, .rate = 1, .momentum = 0, .fraction = 1}, "int8",
        {view_of("a", std::span(a)), view_of("b", std::span(b)), view_of("c", std::span(c)),
         view_of("buffer", std::span(buffer), Role::buffer)});
    const auto goal = [](std::size_t e) { return static_cast<float>(e % 5) - 2; };
    worker.step([&] {
      for (std::size_t e = 0; e < a.size(); ++e) a[e] = goal(e);
      for (std::size_t e = 0; e < b.size(); ++e) b[e] = goal(e);
      for (std::size_t e = 0; e < c.size(); ++e) c[e] = to_bfloat16(goal(e));
    });
    // 1/127 by the code, and a rounding to 8 bits.
    const auto near = [&](double found, std::size_t e) {
      testing::expect(std::abs(found - goal(e)) <= 0.02, fmt::format("{}", found));
    };
    for (std::size_t e = 0; e < a.size(); ++e) near(a[e], e);
    for (std::size_t e = 0; e < b.size(); ++e) near(b[e], e);
    for (std::size_t e = 0; e < c.size(); ++e) near(to_float(c[e]), e);
    for (const float x : buffer) testing::expect_near(x, 1, "a buffer", 1e-6);
  });
}
