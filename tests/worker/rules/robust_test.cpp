// Robust averaging: the values after rounds are those of the formulas, and bad workers move the
// others no further than the formulas say.
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/closing.hpp>
#include <fast/worker/rotating_arena.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/constant.hpp"
#include "worker/start/robust_start.hpp"

using namespace fast;
using testing::expect;

namespace {

constexpr std::size_t robust_elements = 700;  // more than one block of the trimmed mean
using Vector = std::vector<double>;
using Models = std::vector<Vector>;

WorkerOptions robust_options(Robust robust, const char* rule = "awc", std::int64_t staleness = 0) {
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::by_name(rule);
  options.robust = robust;
  options.staleness = staleness;
  return options;
}

/// Worker `bad` (if there is one) is a thousand times as far away as the others.
Models drawn(int workers, int bad, std::uint64_t seed, std::size_t size = robust_elements) {
  Rng rng(seed);
  Models models(static_cast<std::size_t>(workers), Vector(size));
  for (Vector& model : models) {
    for (double& value : model) value = static_cast<float>(rng.normal());
  }
  if (bad >= 0) {
    for (double& value : models[static_cast<std::size_t>(bad)]) value *= 1000;
  }
  return models;
}

double distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t e = 0; e < a.size(); ++e) sum += (a[e] - b[e]) * (a[e] - b[e]);
  return std::sqrt(sum);
}

/// The (f+1)-th largest, where f is a third of the neighbors and the worker.
double radius_of(Vector distances) {
  std::ranges::sort(distances, std::greater<>());
  return distances[(distances.size() + 1) / 3];
}

Vector clipped_average(const Models& x, std::size_t i, const MixingRow& row) {
  Vector distances;
  for (const int j : row.neighbors) distances.push_back(distance(x[i], x[std::size_t(j)]));
  const double radius = radius_of(distances);
  Vector next = x[i];
  for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
    const Vector& other = x[static_cast<std::size_t>(row.neighbors[k])];
    const double share = distances[k] > radius ? radius / distances[k] : 1;
    for (std::size_t e = 0; e < next.size(); ++e)
      next[e] += row.weights[k] * share * (other[e] - x[i][e]);
  }
  return next;
}

Vector trimmed_average(const Models& x, std::size_t i, const MixingRow& row) {
  Vector next(x[i].size());
  const std::size_t n = row.neighbors.size() + 1, trim = n / 3;
  for (std::size_t e = 0; e < next.size(); ++e) {
    Vector column{x[i][e]};
    for (const int j : row.neighbors) column.push_back(x[static_cast<std::size_t>(j)][e]);
    std::ranges::sort(column);
    for (std::size_t k = trim; k < n - trim; ++k) next[e] += column[k] / double(n - 2 * trim);
  }
  return next;
}

Models expected_after(Models x, const Topology& topology, Robust robust, int rounds) {
  for (int t = 0; t < rounds; ++t) {
    Models next;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const MixingRow row = mixing_row(topology, static_cast<int>(i));
      next.push_back(robust == Robust::clip ? clipped_average(x, i, row)
                                            : trimmed_average(x, i, row));
    }
    x = std::move(next);
  }
  return x;
}

/// Rounds without steps from `start`. Those of worker 0's stats are left in `stats`.
template <class T>
Models averaged(const Models& start, const TopologyRule& rule, const WorkerOptions& options,
                int rounds, std::vector<WorkerStats>& stats) {
  Models ends(start.size());
  stats.resize(start.size());
  local::run(static_cast<int>(start.size()), [&](const Group& group) {
    const auto me = static_cast<std::size_t>(group.rank());
    std::vector<T> x(start[me].begin(), start[me].end());
    Worker worker(group, rule, {view_of("x", std::span(x))}, options);
    for (int t = 0; t < rounds; ++t) worker.step([] {});
    worker.await_finish();
    ends[me].assign(x.begin(), x.end());
    stats[me] = worker.stats();
  });
  return ends;
}

struct RobustCase {
  int workers;
  const char* topology;
};

std::vector<RobustCase> robust_cases() {
  std::vector<RobustCase> all;
  for (int workers = 3; workers <= 7; ++workers) {
    all.push_back({workers, "ring"});
    all.push_back({workers, "complete"});
  }
  all.push_back({6, "torus2d"});
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("rounds give what the formulas of clipping and trimming give", "", float,
                   double) {
  const double tolerance = std::is_same_v<TestType, float> ? 3e-5 : 1e-12;
  for (const auto& [workers, name] : robust_cases()) {
    const TopologyRule rule = topology_by_name(name);
    for (const Robust robust : {Robust::clip, Robust::trimmed_mean}) {
      for (const char* algorithm : {"awc", "atc"}) {
        const int bad = workers - 1;
        const Models start = drawn(workers, bad, 17);
        std::vector<WorkerStats> stats;
        const Models ends =
            averaged<TestType>(start, rule, robust_options(robust, algorithm), 4, stats);
        const Models expected = expected_after(start, rule.make(workers).at(0), robust, 4);
        for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
          INFO(fmt::format("{} workers on {}, {}, worker {}", workers, name, algorithm, i));
          REQUIRE(distance(ends[i], expected[i]) <
                  tolerance * std::sqrt(double(robust_elements)) * 10);
        }
      }
    }
  }
}

// Sweeps go by blocks of 2048 elements.
TEST_CASE("distances are those of all tensors and blocks, and of all buffers") {
  Models parameters = drawn(5, -1, 3, 5000);
  const Models buffers = drawn(5, 1, 4, 2500);
  for (std::size_t e = 0; e < 3000; ++e) parameters[4][e] *= 1000;
  for (const Robust robust : {Robust::clip, Robust::trimmed_mean}) {
    const Topology topology = stencil::complete().make(5).at(0);
    const Models expected = expected_after(parameters, topology, robust, 1);
    const Models expected_buffers = expected_after(buffers, topology, robust, 1);
    local::run(5, [&](const Group& group) {
      const auto me = static_cast<std::size_t>(group.rank());
      Vector x = parameters[me], b = buffers[me];
      const std::span<double> all(x);
      Worker worker(
          group, stencil::complete(),
          {view_of("first", all.first(3000)), view_of("second", all.subspan(3000, 1500)),
           view_of("third", all.last(500)), view_of("buffer", std::span(b), Role::buffer)},
          robust_options(robust));
      worker.step([] {});
      worker.await_finish();
      expect(distance(x, expected[me]) < 1e-9, "parameters differ");
      expect(distance(b, expected_buffers[me]) < 1e-9, "buffers differ");
    });
  }
}

TEST_CASE("a bad worker is counted by its neighbors, and no other is clipped as much") {
  std::vector<WorkerStats> stats;
  averaged<double>(drawn(6, 2, 5), stencil::complete(), robust_options(Robust::clip), 3, stats);
  for (const std::size_t i : {0, 1, 3, 4, 5}) {
    const std::vector<NeighborShare>& shares = stats[i].shares;
    REQUIRE(shares.size() == 5);
    for (const NeighborShare& share : shares) {
      CHECK(share.reads == 3);
      if (share.worker == 2) {
        CHECK(share.clipped == 3);
        CHECK(share.kept < 0.01);
      } else {
        CHECK(share.kept > 0.5);
      }
    }
  }
  averaged<double>(drawn(6, 2, 5), stencil::complete(), robust_options(Robust::trimmed_mean), 1,
                   stats);
  for (const NeighborShare& share : stats[0].shares) {
    CHECK(share.reads == 1);
    CHECK(share.clipped == 1);
    if (share.worker == 2) CHECK(share.kept < 0.05);
    if (share.worker != 2) CHECK(share.kept > 0.2);
  }
  averaged<double>(drawn(6, 2, 5), stencil::complete(), robust_options(Robust::none), 3, stats);
  CHECK(stats[0].shares.empty());
}

// Unit vectors are as far from each other as any two of them, and stay so.
TEST_CASE("clipping that clips nothing is the plain average") {
  for (int workers = 3; workers <= 7; ++workers) {
    Models start(static_cast<std::size_t>(workers), Vector(robust_elements, 0.25));
    for (std::size_t i = 0; i < start.size(); ++i) start[i][i] = 1;
    for (const char* rule : {"awc", "atc", "local"}) {
      std::vector<WorkerStats> stats;
      const Models plain = averaged<double>(start, stencil::complete(),
                                            robust_options(Robust::none, rule), 4, stats);
      const Models clipped = averaged<double>(start, stencil::complete(),
                                              robust_options(Robust::clip, rule), 4, stats);
      for (std::size_t i = 0; i < plain.size(); ++i) {
        for (std::size_t e = 0; e < robust_elements; ++e)
          REQUIRE(std::abs(plain[i][e] - clipped[i][e]) <= 1e-15);
      }
    }
  }
}

// With two neighbors, one of whom is where the worker is, the radius is 0.
TEST_CASE("workers that agree stay exactly where they are, at any staleness") {
  for (const Robust robust : {Robust::clip, Robust::trimmed_mean}) {
    for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{2}, unbounded_staleness}) {
      for (const char* rule : {"awc", "atc"}) {
        for (const char* codec : {"identity", "bf16", "int8"}) {
          local::run(5, [&](const Group& group) {
            const bool is_bad = group.rank() == 3;
            std::vector<float> x(robust_elements, 0.5F);
            WorkerOptions options = robust_options(robust, rule, staleness);
            options.codec = codec::by_name(codec);
            Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
            for (int t = 0; t < 60; ++t) {
              worker.step([&] {
                if (is_bad) std::ranges::fill(x, static_cast<float>(1000 + t));
              });
            }
            worker.await_finish();
            if (is_bad) return;
            expect(std::ranges::all_of(x, [](float value) { return value == 0.5F; }),
                   fmt::format("{} {} {}: worker {} has moved to {}", rule, codec, staleness,
                               group.rank(), x[0]));
          });
        }
      }
    }
  }
}

namespace {

/// Worker 2's weights grow beyond what fp16 can hold, which travels as infinity. The text of the
/// error that ends a worker, and its shares at that time.
std::string train_beyond_fp16(const Group& group, std::vector<float>& x, WorkerOptions options,
                              std::vector<NeighborShare>& shares) try {
  options.codec = codec::by_name("fp16");
  Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, options);
  try {
    for (int t = 0; t < 20; ++t) {
      worker.step([&] {
        if (group.rank() == 2) x[300] = 1e6F;
      });
    }
    worker.await_finish();
  } catch (...) {
    shares = worker.stats().shares;
    throw;
  }
  return {};
} catch (const Error& error) {
  const ErrorKind expected = group.rank() == 2 ? ErrorKind::numeric : ErrorKind::peer_failed;
  expect(error.kind() == expected, error.what());
  return error.what();
}

}  // namespace

TEST_CASE("a worker whose own message is not finite ends, and blames and infects nobody") {
  for (const Robust robust : {Robust::clip, Robust::trimmed_mean}) {
    for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{2}}) {
      local::run(5, [&](const Group& group) {
        std::vector<float> x(robust_elements, 1.0F);
        std::vector<NeighborShare> shares;
        const std::string text =
            train_beyond_fp16(group, x, robust_options(robust, "atc", staleness), shares);
        expect(!text.empty(), "nothing has ended");
        if (group.rank() == 2) {
          expect(text.find("own message") != std::string::npos, text);
          expect(shares.empty(), "it blames others");
          return;
        }
        expect(std::ranges::all_of(x, [](float value) { return value == 1; }), "it has moved");
        for (const NeighborShare& share : shares) {
          if (share.worker != 2) expect(share.clipped == 0, "another is blamed");
          // Above staleness 0, what is read first may be from before the first step.
          if (share.worker == 2 && staleness == 0) expect(share.kept == 0, "not counted");
        }
      });
    }
  }
}

TEST_CASE("parameters and buffers are clipped by distances of their own") {
  local::run(4, [&](const Group& group) {
    // Buffers are far apart. Parameters are equal, except those of worker 3.
    std::vector<double> w(10, group.rank() == 3 ? 50.0 : 1.0), b(7, 1000.0 * group.rank());
    Worker worker(group, stencil::complete(),
                  {view_of("w", std::span(w)), view_of("b", std::span(b), Role::buffer)},
                  robust_options(Robust::clip));
    worker.step([] {});
    if (group.rank() == 3) return;
    expect(w[4] == 1, "the parameters have moved");
    // Of worker 0: distances 1000, 2000, 3000 by the same factor: the last is clipped to 2000.
    if (group.rank() == 0) testing::expect_near(b[6], (1000.0 + 2000 + 2000) / 4, "buffers", 1e-12);
  });
}

TEST_CASE("16-bit weights are clipped as others are") {
  local::run(4, [&](const Group& group) {
    std::vector<BFloat16> x(robust_elements, to_bfloat16(group.rank() == 3 ? 512.0F : 1.0F));
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                  robust_options(Robust::clip));
    for (int t = 0; t < 5; ++t) worker.step([] {});
    if (group.rank() != 3) expect(to_float(x[9]) == 1, "it has moved");
  });
}

TEST_CASE("a bad worker cannot move others in closing rounds") {
  local::run(5, [&](const Group& group) {
    std::vector<double> x(robust_elements, group.rank() == 1 ? 1e9 : 3.0);
    const TopologyRule rule = stencil::torus2d();
    Worker worker = close_training(group, rule, spectrum(rule.make(5)),
                                   {view_of("x", std::span(x))}, 6, robust_options(Robust::clip));
    if (group.rank() != 1) expect(x[1] == 3, fmt::format("it has moved to {}", x[1]));
  });
}

namespace {

/// The text of the error of a Worker with these options on all of so many workers.
std::string refusal(int workers, const TopologyRule& rule, const WorkerOptions& options) {
  std::string text;
  local::run(workers, [&](const Group& group) {
    std::vector<double> x(4);
    try {
      const Worker worker(group, rule, {view_of("x", std::span(x))}, options);
    } catch (const Error& error) {
      if (group.rank() == 0) text = error.what();
    }
  });
  return text;
}

}  // namespace

TEST_CASE("rules that robust averaging does not fit refuse it with a reason") {
  int taken = 0;
  for (const std::string_view name : algorithm::names()) {
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::by_name(name, testing::short_of(name));
    options.robust = Robust::clip;
    const bool fits = name == "awc" || name == "atc" || name == "local";
    const std::string text =
        refusal(4, fits ? stencil::ring() : testing::topology_for(name), options);
    INFO(name << ": " << text);
    CHECK(text.empty() == fits);
    if (!fits) CHECK(text.find("robust averaging with algorithm") != std::string::npos);
    taken += fits ? 1 : 0;
  }
  CHECK(taken == 3);
}

TEST_CASE("topologies in which nobody has two neighbors are refused, some with one are told") {
  const auto options = [](std::vector<std::string>* said, Robust robust) {
    WorkerOptions made = robust_options(robust);
    made.log = [said](LogLevel, std::string_view text) { said->emplace_back(text); };
    return made;
  };
  std::vector<std::string> said;
  const auto contains = [&](const char* part) {
    return std::ranges::any_of(
        said, [part](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  CHECK(refusal(2, stencil::ring(), options(&said, Robust::clip)).find("torus2d") !=
        std::string::npos);
  CHECK(refusal(4, schedule::one_peer_exponential(), options(&said, Robust::clip))
            .find("no worker reads two neighbors") != std::string::npos);
  CHECK(refusal(4, topology_by_name("grid2d"), options(&said, Robust::clip)) == "");
  CHECK_FALSE(contains("one neighbor"));
  CHECK(refusal(3, topology_by_name("line"), options(&said, Robust::clip)) == "");
  CHECK(contains("worker 0 reads one neighbor"));
  const Topology star("star", {{}, {0}, {0, 1}, {0, 1, 2}});  // worker 0 reads nobody
  CHECK(refusal(4, star, options(&said, Robust::clip)) == "");
  CHECK(contains("worker 1 reads one neighbor"));
  CHECK(refusal(4, stencil::ring(), options(&said, Robust::trimmed_mean)) == "");
  CHECK(contains("median"));
  CHECK(refusal(4, stencil::ring(), options(&said, Robust::clip)) == "");
  CHECK(contains("as close as the other"));
  said.clear();
  CHECK(refusal(4, stencil::complete(), options(&said, Robust::trimmed_mean)) == "");
  CHECK_FALSE(contains("median"));
}

TEST_CASE("a site refuses robust averaging") {
  WorkerOptions options = robust_options(Robust::clip);
  int site = 0;  // whose exchanges nobody makes
  options.site = {std::make_shared<int>(), reinterpret_cast<SiteExchange*>(&site)};
  CHECK_THROWS_WITH(worker::check_for_robust(options), ContainsSubstring("between sites"));
}

TEST_CASE("tensors on a device refuse robust averaging") {
  CHECK_THAT(why_not_on_device(robust_options(Robust::clip)),
             ContainsSubstring("robust averaging with tensors on a device"));
}

TEST_CASE("workers whose robust averages differ find that out at the start") {
  local::run(3, [](const Group& group) {
    std::vector<double> x(4);
    const Robust robust = group.rank() == 1 ? Robust::trimmed_mean : Robust::clip;
    std::string text;
    try {
      const Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                          robust_options(robust));
    } catch (const Error& error) {
      text = error.what();
    }
    expect(text.find("trimmed_mean") != std::string::npos, "it says: " + text);
  });
}

TEST_CASE("a rotating arena refuses robust averaging") {
  CHECK_THROWS_AS(check_for_rotation(robust_options(Robust::clip)), Error);
}
