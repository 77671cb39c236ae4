// What balanced workers converge to, on least squares whose optimum has a closed form.
//
// Worker i has n_i samples c of two coordinates and their curvatures h: f_i(x) is the mean of
// h/2 (x - c)² over them. The optimum of the union of all samples is Σ h c / Σ h over all samples.
// The mean of the f_i, in which each worker counts alike, has another one.
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <array>
#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "train/balance/shares.hpp"

using namespace fast;
using train::Shares;

namespace {

using PlanePoint = std::array<double, 2>;

struct CurvedSample {
  PlanePoint center, curvature;
};
using CurvedPart = std::vector<CurvedSample>;

/// Of workers with these batches, whose samples differ from worker to worker.
std::vector<CurvedPart> make_parts(const Shares& shares, Rng& rng) {
  std::vector<CurvedPart> parts(static_cast<std::size_t>(shares.workers()));
  for (int w = 0; w < shares.workers(); ++w) {
    for (std::size_t s = 0; s < shares.of(w).batch_size; ++s) {
      CurvedSample sample{};
      for (std::size_t i = 0; i < 2; ++i) {
        sample.center[i] = 4 * shares.scale(w) + rng.normal();
        sample.curvature[i] = 0.5 + rng.uniform() + 0.2 * w;
      }
      parts[static_cast<std::size_t>(w)].push_back(sample);
    }
  }
  return parts;
}

/// Where Σ_i weight_i Σ_s h (x - c) is zero.
PlanePoint optimum(const std::vector<CurvedPart>& parts, const std::vector<double>& weights) {
  PlanePoint pull{}, mass{};
  for (std::size_t w = 0; w < parts.size(); ++w) {
    for (const CurvedSample& sample : parts[w]) {
      for (std::size_t i = 0; i < 2; ++i) {
        pull[i] += weights[w] * sample.curvature[i] * sample.center[i];
        mass[i] += weights[w] * sample.curvature[i];
      }
    }
  }
  return {pull[0] / mass[0], pull[1] / mass[1]};
}

PlanePoint optimum_of_union(const std::vector<CurvedPart>& parts) {
  return optimum(parts, std::vector<double>(parts.size(), 1));
}

PlanePoint optimum_of_mean(const std::vector<CurvedPart>& parts) {
  std::vector<double> weights;
  for (const CurvedPart& part : parts) weights.push_back(1 / static_cast<double>(part.size()));
  return optimum(parts, weights);
}

PlanePoint slope_at(const CurvedPart& part, const PlanePoint& x) {
  PlanePoint sum{};
  for (const CurvedSample& sample : part) {
    for (std::size_t i = 0; i < 2; ++i)
      sum[i] += sample.curvature[i] * (x[i] - sample.center[i]) / static_cast<double>(part.size());
  }
  return sum;
}

/// The mean of the workers' points after training, each on its own part.
PlanePoint trained_mean(const std::vector<CurvedPart>& parts, const std::vector<double>& scales,
                        const char* algorithm, const TopologyRule& rule, double first_rate,
                        int rounds) {
  const auto workers = static_cast<int>(parts.size());
  std::vector<PlanePoint> ends(parts.size());
  local::run(workers, [&](const Group& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    PlanePoint x{};
    WorkerOptions options;
    options.algorithm = algorithm::by_name(algorithm);
    options.deadline = Seconds(30);
    Worker worker(group, rule, {TensorView{"x", x.data(), {2}, DType::f64, Role::parameter, {}}},
                  options);
    for (int round = 0; round < rounds; ++round) {
      // Rules without a correction come the nearer to the optimum the smaller the rate is.
      const double rate = first_rate / (1 + (algorithm == std::string("awc") ? round / 20.0 : 0));
      worker.step(
          [&] {
            const PlanePoint slope = slope_at(parts[rank], x);
            for (std::size_t i = 0; i < 2; ++i) x[i] -= rate * scales[rank] * slope[i];
          },
          {.learning_rate = rate});
    }
    worker.finish();
    worker.await_finish();
    PlanePoint mean{};
    worker.mean_model(std::as_writable_bytes(std::span(mean)));
    ends[rank] = mean;
  });
  return ends.front();
}

double distance_between(const PlanePoint& a, const PlanePoint& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1]);
}

std::vector<double> scales_of(const Shares& shares) {
  std::vector<double> scales;
  for (int w = 0; w < shares.workers(); ++w) scales.push_back(shares.scale(w));
  return scales;
}

}  // namespace

TEST_CASE("with scaled steps the mean converges to the optimum of all samples, else it does not") {
  const std::uint64_t seed = test_seed(41);
  CAPTURE(seed);
  Rng rng(seed);
  for (const std::vector<double>& speeds :
       {std::vector<double>{4, 2, 1}, std::vector<double>{1, 4, 2, 1, 3}}) {
    const Shares shares = Shares::in_proportion(speeds, 14);
    const auto parts = make_parts(shares, rng);
    const std::vector<double> alike(parts.size(), 1);
    const PlanePoint right = optimum_of_union(parts), wrong = optimum_of_mean(parts);
    REQUIRE(distance_between(right, wrong) > 0.3);
    struct RuleCase {
      const char* algorithm;
      TopologyRule rule;
      double rate, tolerance;
      int rounds;
    };
    const RuleCase cases[] = {{"gradient_tracking", stencil::ring(), 0.05, 1e-6, 1500},
                              {"awc", stencil::ring(), 0.2, 0.03, 3000}};
    for (const RuleCase& each : cases) {
      CAPTURE(each.algorithm, shares.text());
      const PlanePoint scaled =
          trained_mean(parts, scales_of(shares), each.algorithm, each.rule, each.rate, each.rounds);
      CHECK(distance_between(scaled, right) < each.tolerance);
      const PlanePoint unscaled =
          trained_mean(parts, alike, each.algorithm, each.rule, each.rate, each.rounds);
      CHECK(distance_between(unscaled, wrong) < each.tolerance);
      CHECK(distance_between(unscaled, right) > 0.2);
    }
  }
}
