// Long runs of every rule with every codec that it accepts: what rounding adds must not gather.
// FAST_ROUNDING_ROUNDS=40000 makes the runs as long as those of real training.
#include <fast/core/random.hpp>

#include <cmath>
#include <cstdlib>
#include <numbers>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/lockstep.hpp"
#include "support/rules.hpp"
#include "support/seed.hpp"

using namespace fast;

namespace {

constexpr int workers = 4;
constexpr std::size_t elements = 32;
using Vector = std::vector<double>;

struct Variant {
  std::string rule;
  algorithm::Parameters parameters{};
};

/// All rules but `gradient_exchange`, which does not converge.
std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const std::string_view name : algorithm::names()) {
    if (name != "gradient_exchange") all.push_back({std::string(name), testing::short_of(name)});
  }
  all.push_back({"awc", {{"consensus", "0.5"}}});
  all.push_back({"diloco", {{"period", "3"}, {"changes", "true"}, {"momentum", "0.5"}}});
  all.push_back({"diloco", {{"period", "4"}, {"fragments", "2"}}});
  all.push_back({"diloco", {{"period", "3"}, {"fraction", "0.2"}}});
  all.push_back({"gasloc", {{"period", "3"}, {"changes", "true"}, {"consensus_step", "0.3"}}});
  all.push_back({"event_triggered", {{"threshold", "0"}}});
  return all;
}

WorkerOptions with(const Variant& variant, std::string_view codec) {
  WorkerOptions options;
  options.algorithm = algorithm::by_name(variant.rule, variant.parameters);
  options.codec = codec::by_name(codec);
  return options;
}

std::vector<std::string_view> accepted_codecs(const Variant& variant) {
  std::vector<std::string_view> accepted = codec::names();
  std::erase_if(accepted, [&](std::string_view name) {
    const WorkerOptions options = with(variant, name);
    try {
      worker::check_options(options, options.algorithm.traits());
      return false;
    } catch (const Error&) {
      return true;
    }
  });
  return accepted;
}

double distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t e = 0; e < a.size(); ++e) sum += (a[e] - b[e]) * (a[e] - b[e]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

std::string text_of(const Variant& variant) {
  std::string text = variant.rule;
  for (const auto& [key, value] : variant.parameters) text += fmt::format(" {}={}", key, value);
  return text;
}

/// Uniform, of variance 1.
double noise(Rng& rng) { return std::sqrt(12.0) * (rng.uniform() - 0.5); }

std::vector<Rng> noises(std::uint64_t seed) {
  std::vector<Rng> all;
  for (std::uint64_t w = 0; w < workers; ++w) all.emplace_back(mix_seed(seed, w));
  return all;
}

/// Noisy gradients of quadratics whose optima differ between workers.
struct Problem {
  std::uint64_t seed;
  int noisy_rounds;
  double level;  ///< of the weights: rounding is relative to it

  double target(int worker, std::size_t e) const {
    Rng rng(mix_seed(seed, static_cast<std::uint64_t>(worker), e));
    return level + 0.5 * worker + 0.25 * noise(rng);
  }
  Vector optimum() const {
    Vector mean(elements);
    for (std::size_t e = 0; e < elements; ++e) {
      for (int w = 0; w < workers; ++w) mean[e] += target(w, e) / workers;
    }
    return mean;
  }
};

/// The workers' mean after the noisy rounds, and after half as many without steps.
struct Means {
  Vector noisy, still;
};

template <class T>
Means train(const Problem& problem, const Variant& variant, std::string_view codec) {
  testing::Lockstep<T> run(testing::topology_for(variant.rule), workers,
                           std::vector<T>(elements, static_cast<T>(problem.level)),
                           with(variant, codec));
  std::vector<std::vector<T>> targets(workers, std::vector<T>(elements));
  for (int w = 0; w < workers; ++w) {
    for (std::size_t e = 0; e < elements; ++e)
      targets[static_cast<std::size_t>(w)][e] = static_cast<T>(problem.target(w, e));
  }
  std::vector<Rng> rngs = noises(problem.seed);
  double rate = 0;
  for (int round = 0; round < problem.noisy_rounds; ++round) {
    rate = 0.005 * (1 + std::cos(std::numbers::pi * round / problem.noisy_rounds));
    run.round(
        [&](int worker, std::span<T> x) {
          const auto w = static_cast<std::size_t>(worker);
          for (std::size_t e = 0; e < elements; ++e) {
            const T gradient = x[e] - targets[w][e] + static_cast<T>(noise(rngs[w]));
            x[e] -= static_cast<T>(rate) * gradient;
          }
        },
        rate);
  }
  Means means{run.mean(), {}};
  for (int round = 0; round < problem.noisy_rounds / 2; ++round)
    run.round([](int, std::span<T>) {}, rate);
  means.still = run.mean();
  return means;
}

/// What rounding may add to the error of the same rule in f64 without a codec, which is `error`:
/// the root of the sum of both squares is then 1.1 times that error.
double allowed(double error) { return std::sqrt(1.1 * 1.1 - 1) * error; }

template <class T>
void check_rounding(const Problem& problem, const Variant& variant, std::string_view codec,
                    const Means& exact) {
  const Means found = train<T>(problem, variant, codec);
  const Vector optimum = problem.optimum();
  INFO("FAST_TEST_SEED=" << problem.seed << ": " << text_of(variant) << " in "
                         << (sizeof(T) == 4 ? "f32" : "f64") << " with " << codec << ", error "
                         << distance(exact.noisy, optimum));
  CHECK(distance(found.noisy, exact.noisy) <= allowed(distance(exact.noisy, optimum)));
  CHECK(distance(found.still, exact.still) <= allowed(distance(exact.still, optimum)));
}

/// How far the mean goes if each step is a millionth of the weights.
template <class T>
Vector creep(std::uint64_t seed, const Variant& variant, std::string_view codec) {
  std::vector<T> start(elements);
  Rng rng(seed);
  for (T& x : start) x = static_cast<T>((0.5 + rng.uniform()) * (rng.below(2) == 0 ? 1 : -1));
  testing::Lockstep<T> run(testing::topology_for(variant.rule), workers, start,
                           with(variant, codec));
  const Vector before = run.mean();
  std::vector<Rng> rngs = noises(seed);
  constexpr double rate = 1e-6;
  for (int round = 0; round < 6000; ++round) {
    run.round(
        [&](int worker, std::span<T> x) {
          Rng& own = rngs[static_cast<std::size_t>(worker)];
          for (std::size_t e = 0; e < elements; ++e)
            x[e] += static_cast<T>(rate * (worker + 0.5) * (0.5 + own.uniform())) * start[e];
        },
        rate);
  }
  Vector moved = run.mean();
  for (std::size_t e = 0; e < elements; ++e) moved[e] -= before[e];
  return moved;
}

}  // namespace

TEST_CASE("rounding adds at most a tenth to the error of any rule with any codec") {
  const char* given = std::getenv("FAST_ROUNDING_ROUNDS");
  Problem problem{test_seed(11), given == nullptr ? 3000 : std::atoi(given), 0};
  problem.level = given == nullptr ? 8 : 0;  // in short runs, rounding is coarser
  for (const Variant& variant : variants()) {
    const Means exact = train<double>(problem, variant, "identity");
    for (const std::string_view codec : accepted_codecs(variant)) {
      check_rounding<float>(problem, variant, codec, exact);
      if (codec != "identity") check_rounding<double>(problem, variant, codec, exact);
    }
  }
}

TEST_CASE("steps of a millionth of the weights move any rule with any codec") {
  const std::uint64_t seed = test_seed(12);
  const Vector nothing(elements);
  for (const Variant& variant : variants()) {
    const Vector exact = creep<double>(seed, variant, "identity");
    for (const std::string_view codec : accepted_codecs(variant)) {
      INFO("FAST_TEST_SEED=" << seed << ": " << text_of(variant) << " with " << codec);
      CHECK(distance(creep<double>(seed, variant, codec), exact) <=
            0.01 * distance(exact, nothing));
      CHECK(distance(creep<float>(seed, variant, codec), exact) <= 0.01 * distance(exact, nothing));
    }
  }
}
