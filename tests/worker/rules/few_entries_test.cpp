// diloco and choco that send few entries, in the code of a codec.
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/constant.hpp"
#include "worker/start/startup.hpp"

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

namespace {

constexpr int choco_workers = 4;
constexpr std::size_t choco_elements = 300;
constexpr double choco_rate = 0.05;
using Vectors = std::vector<std::vector<double>>;

Vectors choco_starts(int workers) {
  Vectors x(static_cast<std::size_t>(workers));
  for (std::size_t i = 0; i < x.size(); ++i) {
    Rng rng(mix_seed(31, i));
    for (std::size_t e = 0; e < choco_elements; ++e) x[i].push_back(rng.normal());
  }
  return x;
}

struct ChocoCase {
  algorithm::ChocoOptions options;
  const char* codec = "identity";
  int rounds = 40;
};

/// On the ring, with steps to goal_of_few where the rate is above 0.
Vectors choco_ends(const ChocoCase& choco, int workers, double rate) {
  Vectors ends = choco_starts(workers);
  local::run(workers, [&](const Group& group) {
    std::vector<double>& x = ends[static_cast<std::size_t>(group.rank())];
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::choco(choco.options);
    options.codec = codec::by_name(choco.codec);
    options.codec.seed = 11;
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    for (int t = 0; t < choco.rounds; ++t) {
      worker.step([&] {
        for (double& value : x) value -= rate * (value - goal_of_few(group.rank()));
      });
    }
  });
  return ends;
}

/// Q(x) of QSGD by its definition: groups of 256 values, as floats. Message 1 is the first one.
std::vector<double> qsgd_of(const std::vector<double>& x, int levels, std::uint64_t worker_seed,
                            std::uint64_t message) {
  const std::uint64_t key = mix_seed(worker_seed, message, 0) & 0xffffffff;
  std::vector<double> q(x.size());
  for (std::size_t first = 0; first < x.size(); first += 256) {
    const std::size_t end = std::min(first + 256, x.size());
    double squares = 0;
    for (std::size_t e = first; e < end; ++e) squares += double(float(x[e])) * double(float(x[e]));
    const double norm = std::sqrt(squares), d = double(end - first), s = levels;
    const double tau = std::min(d / (s * s), std::sqrt(d) / s);
    for (std::size_t e = first; e < end; ++e) {
      const double u = static_cast<double>(mix_seed(key, e) >> 11) / 9007199254740992.0;
      const double a = s * std::abs(double(float(x[e]))) / norm, below = std::floor(a);
      const double code = std::min(s, u + (a - below) >= 1 ? below + 1 : below);
      const auto level = static_cast<float>(norm / (s * (1 + tau)));
      q[e] = level * static_cast<float>(std::copysign(code, x[e]));
    }
  }
  return q;
}

/// Of each run of so many entries one, as it is.
std::vector<double> random_k_of(const std::vector<double>& x, std::size_t run,
                                std::uint64_t worker_seed, std::uint64_t round) {
  std::vector<double> q(x.size());
  const std::uint64_t number = mix_seed(worker_seed, round);
  for (std::size_t k = 0; k * run < x.size(); ++k) {
    const std::size_t length = std::min(run, x.size() - k * run);
    const std::size_t e = k * run + mix_seed(1, number, k) % length;
    q[e] = x[e];
  }
  return q;
}

/// CHOCO-SGD, algorithm 2, with all copies x̂ of all workers on their own.
template <class Compress>
Vectors choco_oracle(const ChocoCase& choco, const Compress& compress) {
  const std::size_t n = choco_workers;
  Vectors x = choco_starts(choco_workers), copies(n, std::vector<double>(choco_elements));
  for (int t = 0; t < choco.rounds; ++t) {
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> change(choco_elements);
      for (std::size_t e = 0; e < choco_elements; ++e) {
        x[i][e] -= choco_rate * (x[i][e] - goal_of_few(static_cast<int>(i)));
        change[e] = x[i][e] - copies[i][e];
      }
      const std::vector<double> q =
          compress(change, mix_seed(11, i), static_cast<std::uint64_t>(t));
      for (std::size_t e = 0; e < choco_elements; ++e) copies[i][e] += q[e];
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<double>&left = copies[(i + n - 1) % n], &right = copies[(i + 1) % n];
      for (std::size_t e = 0; e < choco_elements; ++e)
        x[i][e] += choco.options.consensus_step * (left[e] + right[e] - 2 * copies[i][e]) / 3;
    }
  }
  return x;
}

double most_between(const Vectors& a, const Vectors& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t e = 0; e < a[i].size(); ++e)
      most = std::max(most, std::abs(a[i][e] - b[i][e]));
  }
  return most;
}

}  // namespace

TEST_CASE("choco with random_k and qsgd goes the way of an oracle that keeps all copies") {
  const ChocoCase drawn{{.fraction = 0.125, .consensus_step = 0.2, .random_k = true}};
  CHECK(most_between(choco_ends(drawn, choco_workers, choco_rate),
                     choco_oracle(drawn, [](const auto& x, auto seed, auto t) {
                       return random_k_of(x, 8, seed, t);
                     })) < 1e-13);
  for (const int levels : {7, 1}) {
    const ChocoCase coded{{.fraction = 1, .consensus_step = 0.2}, levels == 7 ? "qsgd4" : "qsgd2"};
    INFO(coded.codec);
    CHECK(most_between(choco_ends(coded, choco_workers, choco_rate),
                       choco_oracle(coded, [&](const auto& x, auto seed, auto t) {
                         return qsgd_of(x, levels, seed, t + 1);
                       })) < 1e-12);
  }
  const ChocoCase whole{{.fraction = 1, .consensus_step = 0.9}};
  CHECK(most_between(choco_ends(whole, choco_workers, choco_rate),
                     choco_oracle(whole, [](const auto& x, auto, auto) { return x; })) < 1e-13);
}

TEST_CASE("choco comes to agree exactly with every compression, and keeps the mean") {
  const ChocoCase cases[] = {
      {{.fraction = 0.25, .consensus_step = 0.3}, "identity", 900},
      {{.fraction = 0.25, .consensus_step = 0.3, .random_k = true}, "identity", 900},
      {{.fraction = 0.25, .consensus_step = 0.3, .random_k = true}, "bf16", 900},
      {{.fraction = 1, .consensus_step = 0.3}, "qsgd4", 400},
      {{.fraction = 1, .consensus_step = 0.1}, "qsgd2", 3500},
      {{.fraction = 0.25, .consensus_step = 0.1}, "qsgd4", 1500},
      {{.fraction = 1, .consensus_step = 0.3}, "int2", 1300},
      {{.fraction = 1, .consensus_step = 0.9}, "int8_stochastic", 300},
  };
  for (const ChocoCase& choco : cases) {
    CAPTURE(choco.codec, choco.options.random_k, choco.options.fraction);
    const Vectors starts = choco_starts(choco_workers), ends = choco_ends(choco, choco_workers, 0);
    double apart = 0, moved = 0;
    for (std::size_t e = 0; e < choco_elements; ++e) {
      double mean = 0, before = 0;
      for (int i = 0; i < choco_workers; ++i) {
        mean += ends[static_cast<std::size_t>(i)][e] / choco_workers;
        before += starts[static_cast<std::size_t>(i)][e] / choco_workers;
      }
      for (const auto& x : ends) apart = std::max(apart, std::abs(x[e] - mean));
      moved = std::max(moved, std::abs(mean - before));
    }
    CHECK(apart <= 1e-14);
    CHECK(moved <= 1e-13);
  }
}

TEST_CASE("choco's messages are as long as they are said to be, and what does not fit is refused") {
  const auto bytes = [](const ChocoCase& choco) {
    double sent = 0;
    local::run(2, [&](const Group& group) {
      std::vector<float> x(5120);
      WorkerOptions options = testing::quick();
      options.algorithm = algorithm::choco(choco.options);
      options.codec = codec::by_name(choco.codec);
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
      worker.step([] {});
      if (group.rank() == 0) sent = worker.stats().bytes_sent - 8;  // without the epoch
    });
    return sent;
  };
  CHECK(bytes({{.fraction = 0.1, .random_k = true}}) == 8 + 4 * 512);
  CHECK(bytes({{.fraction = 0.1, .random_k = true}, "bf16"}) == 8 + 2 * 512);
  CHECK(bytes({{.fraction = 0.1}}) == 8 + 8 * 512);
  CHECK(bytes({{.fraction = 1}}) == 4 * 5120);
  CHECK(bytes({{.fraction = 1}, "qsgd4"}) == 20 * (4 + 128));
  CHECK(bytes({{.fraction = 1}, "qsgd2"}) == 20 * (4 + 64));
  CHECK_THROWS_WITH(algorithm::choco({.top_k = 3, .random_k = true}),
                    "choco: random_k with top_k 3; random_k draws by `fraction`, leave top_k out");
  WorkerOptions options;
  options.algorithm = algorithm::choco({.random_k = true});
  options.codec = codec::by_name("qsgd4");
  CHECK_THROWS_WITH(
      worker::check_options(options, options.algorithm.traits()),
      Catch::Matchers::Contains("it needs 16 at least, as entries that travel alone"));
  options.algorithm = algorithm::diloco({.fraction = 0.1});
  CHECK_THROWS_WITH(worker::check_options(options, options.algorithm.traits()),
                    Catch::Matchers::Contains("codec qsgd4, which shrinks what it codes; choose"));
  options.algorithm = algorithm::awc();
  CHECK_THROWS_WITH(worker::check_options(options, options.algorithm.traits()),
                    Catch::Matchers::Contains("4 bits an element; it needs 8 at least"));
}
