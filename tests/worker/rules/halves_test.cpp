// 16-bit weights: what rounding takes in one round is there in the next one.
// FAST_ROUNDING_ROUNDS=100000 makes the runs longer.
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "combine/segment_sweep.hpp"
#include "support/lockstep.hpp"
#include "support/seed.hpp"
#include "worker/device_rounds.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

constexpr int workers = 4;
constexpr std::size_t elements = 67;  // no multiple of any vector's length
using Vector = std::vector<double>;

template <class Half>
constexpr double unit_of_one = std::is_same_v<Half, BFloat16> ? 0x1p-7 : 0x1p-10;

/// Of a value of that size: between neighbors of the type.
template <class Half>
double unit_at(double value) {
  return unit_of_one<Half> * std::exp2(std::floor(std::log2(std::abs(value))));
}

int long_rounds() {
  const char* given = std::getenv("FAST_ROUNDING_ROUNDS");
  return given == nullptr ? 10000 : std::atoi(given);
}

template <class T>
Vector doubles(const std::vector<T>& values) {
  Vector all(values.size());
  std::ranges::transform(values, all.begin(), as_double<T>);
  return all;
}

/// Between 1.25 and 1.75, where all values are multiples of one unit.
template <class Half>
std::vector<Half> start(std::uint64_t seed) {
  Rng rng(mix_seed(seed, 1));
  std::vector<Half> values(elements);
  for (Half& x : values) x = from_double<Half>(1.25 + 0.5 * rng.uniform());
  return values;
}

/// event_triggered sends in each round here: when it does not, its mean moves in any type.
WorkerOptions with(std::string_view rule, std::string_view codec = "identity") {
  WorkerOptions options;
  const bool rarely = rule == "event_triggered";
  options.algorithm =
      algorithm::by_name(rule, rarely ? algorithm::Parameters{{"threshold", "0"}} : short_of(rule));
  options.codec = codec::by_name(codec);
  return options;
}

/// Steps of the workers, by worker and element, whose sum is 0.
class ZeroSums {
 public:
  explicit ZeroSums(std::uint64_t seed) : rng_(mix_seed(seed, 2)) {}

  /// Of -2 to 2 units.
  void draw_units(double unit) {
    for (std::size_t e = 0; e < elements; ++e) {
      const double a = unit * static_cast<double>(rng_.below(3)),
                   b = unit * (1.0 - static_cast<double>(rng_.below(3)));
      const std::size_t w = rng_.below(workers);
      for (std::size_t k = 0; k < workers; ++k)
        steps_[(w + k) % workers][e] = std::array{a, -a, b, -b}[k];
    }
  }
  double of(int worker, std::size_t e) const { return steps_[static_cast<std::size_t>(worker)][e]; }

 private:
  Rng rng_;
  std::array<std::array<double, elements>, workers> steps_{};
};

/// The largest difference, in units at the values of `of`.
template <class Half>
double largest_in_units(const Vector& from, const Vector& of) {
  double most = 0;
  for (std::size_t e = 0; e < of.size(); ++e)
    most = std::max(most, std::abs(from[e] - of[e]) / unit_at<Half>(of[e]));
  return most;
}

/// How far the mean goes with zero-sum steps, in units, beside what the rounding of the program's
/// own steps adds: steps do not fit the type where weights come to another power of 2.
template <class Half>
double drift(const std::string& rule, const std::string& codec, std::uint64_t seed, int rounds) {
  Lockstep<Half> run(rule == "push_sum" ? device_topology(rule, workers) : topology_for(rule),
                     workers, start<Half>(seed), with(rule, codec));
  Vector expected = run.mean();
  ZeroSums steps(seed);
  for (int round = 0; round < rounds; ++round) {
    steps.draw_units(unit_of_one<Half>);
    run.round(
        [&](int worker, std::span<Half> x) {
          for (std::size_t e = 0; e < elements; ++e) {
            const double before = as_double(x[e]);
            x[e] = from_double<Half>(before + steps.of(worker, e));
            expected[e] += (as_double(x[e]) - before) / workers;
          }
        },
        0.01);
  }
  // The mean of push_sum is that of the masses until all agree.
  for (int round = 0; rule == "push_sum" && round < 300; ++round)
    run.round([](int, std::span<Half>) {}, 0.01);
  return largest_in_units<Half>(run.mean(), expected);
}

/// The same for a ring that rounds each average to the nearest value, and keeps nothing.
template <class Half>
double drift_of_nearest(std::uint64_t seed, int rounds) {
  const Vector before = doubles(start<Half>(seed));
  std::array<Vector, workers> x;
  x.fill(before);
  ZeroSums steps(seed);
  for (int round = 0; round < rounds; ++round) {
    steps.draw_units(unit_of_one<Half>);
    const auto sent = x;
    for (std::size_t w = 0; w < workers; ++w) {
      for (std::size_t e = 0; e < elements; ++e) {
        const double average =
            (sent[w][e] + sent[(w + 1) % workers][e] + sent[(w + 3) % workers][e]) / 3;
        x[w][e] = as_double(from_double<Half>(average + steps.of(static_cast<int>(w), e)));
      }
    }
  }
  Vector mean(elements);
  for (const Vector& each : x)
    for (std::size_t e = 0; e < elements; ++e) mean[e] += each[e] / workers;
  return largest_in_units<Half>(mean, before);
}

/// Rules for 16-bit weights: no average over all workers, no messages that travel on.
std::vector<std::string> rules() {
  std::vector<std::string> all;
  for (const std::string_view name : algorithm::names()) {
    if (name != "allreduce" && name != "gossip_pga" && name != "gradient_exchange" &&
        name != "relay_sum")
      all.emplace_back(name);
  }
  return all;
}

/// The workers' weights after rounds with the same steps in every type, and their mean.
struct Trajectory {
  std::array<Vector, workers> x;
  Vector mean;
};

template <class T, class Half>
Trajectory trajectory(const std::string& rule, std::uint64_t seed) {
  std::vector<T> first;
  for (const double x : doubles(start<Half>(seed))) first.push_back(from_double<T>(x));
  Lockstep<T> run(topology_for(rule), workers, first, with(rule));
  ZeroSums steps(seed);
  for (int round = 0; round < 60; ++round) {
    steps.draw_units(unit_of_one<Half>);
    run.round(
        [&](int worker, std::span<T> x) {
          for (std::size_t e = 0; e < elements; ++e)
            x[e] = from_double<T>(as_double(x[e]) + steps.of(worker, e));
        },
        1);
  }
  Trajectory found{{}, run.mean()};
  for (int w = 0; w < workers; ++w) found.x[static_cast<std::size_t>(w)] = doubles(run.x(w));
  return found;
}

}  // namespace

TEMPLATE_TEST_CASE("steps whose sum is 0 leave the mean of a ring of 16-bit weights where it is",
                   "", BFloat16, Float16) {
  const std::uint64_t seed = test_seed(21);
  INFO("FAST_TEST_SEED=" << seed);
  for (const char* rule : {"awc", "atc"}) {
    const double moved = drift<TestType>(rule, "identity", seed, long_rounds());
    INFO(rule << " moves by " << moved << " units");
    CHECK(moved <= 1);
  }
  const double nearest = drift_of_nearest<TestType>(seed, long_rounds());
  INFO("without remainders " << nearest << " units");
  CHECK(nearest > 2);
}

TEMPLATE_TEST_CASE("the mean of 16-bit weights stays with every codec", "", BFloat16, Float16) {
  const std::uint64_t seed = test_seed(22);
  for (const std::string_view codec : codecs_of_weights()) {
    const double moved = drift<TestType>("awc", std::string(codec), seed, 2000);
    INFO("FAST_TEST_SEED=" << seed << ": " << codec << " moves by " << moved << " units");
    CHECK(moved <= 1);
  }
}

TEMPLATE_TEST_CASE("every rule keeps the mean of 16-bit weights", "", BFloat16, Float16) {
  const std::uint64_t seed = test_seed(23);
  for (const std::string& rule : rules()) {
    const double moved = drift<TestType>(rule, "identity", seed, 1000);
    INFO("FAST_TEST_SEED=" << seed << ": " << rule);
    CHECK(moved <= 1);
  }
}

TEMPLATE_TEST_CASE("rules go the same way with 16-bit weights as with f32", "", BFloat16, Float16) {
  const std::uint64_t seed = test_seed(24);
  for (const std::string& rule : rules()) {
    const Trajectory found = trajectory<TestType, TestType>(rule, seed);
    const Trajectory expected = trajectory<float, TestType>(rule, seed);
    double apart = 0;
    for (std::size_t w = 0; w < workers; ++w)
      apart = std::max(apart, largest_in_units<TestType>(found.x[w], expected.x[w]));
    const double means = largest_in_units<TestType>(found.mean, expected.mean);
    INFO("FAST_TEST_SEED=" << seed << ": " << rule);
    CHECK(apart <= (rule == "choco" ? 12 : 3));  // choco may send other entries
    CHECK(means <= 1);
  }
}

TEMPLATE_TEST_CASE("16-bit weights of the size of their steps keep their mean", "", BFloat16,
                   Float16) {
  const std::uint64_t seed = test_seed(25);
  Lockstep<TestType> run(stencil::ring(), workers, std::vector<TestType>(elements), with("awc"));
  Vector expected(elements);
  Rng rng(seed);
  double largest = 0;
  for (int round = 0; round < 2000; ++round) {
    run.round(
        [&](int, std::span<TestType> x) {
          for (std::size_t e = 0; e < elements; ++e) {
            const double before = as_double(x[e]);
            x[e] = from_double<TestType>(0.9 * before + rng.normal());
            expected[e] += (as_double(x[e]) - before) / workers;
            largest = std::max(largest, std::abs(as_double(x[e])));
          }
        },
        0.01);
  }
  const Vector mean = run.mean();
  for (std::size_t e = 0; e < elements; ++e) {
    INFO("FAST_TEST_SEED=" << seed << ", element " << e);
    CHECK(std::abs(mean[e] - expected[e]) <= unit_at<TestType>(largest));
  }
}

// Two workers that go a thousandth of the way to their mean in each round.
TEMPLATE_TEST_CASE("pulls of less than half a unit add up", "", BFloat16, Float16) {
  const double unit = unit_of_one<TestType>, apart = 10 * unit, share = 0.002;
  const double first = 1.25, pull = share * apart / 2;
  REQUIRE(pull < unit / 10);
  WorkerOptions options;
  options.algorithm = algorithm::by_name("awc", {{"consensus", std::to_string(share)}});
  Lockstep<TestType> run(stencil::complete(), 2,
                         std::vector<TestType>(elements, from_double<TestType>(first)), options);
  run.round(
      [&](int worker, std::span<TestType> x) {
        for (TestType& each : x) each = from_double<TestType>(first + worker * apart);
      },
      1);
  for (int round = 1; round <= 2000; ++round) {
    run.round([](int, std::span<TestType>) {}, 1);
    const double left = apart / 2 * std::pow(1 - share, round - 1);
    for (int w = 0; w < 2; ++w) {
      const double expected = first + apart / 2 + (w == 0 ? -left : left);
      for (const double x : doubles(run.x(w))) REQUIRE(std::abs(x - expected) <= unit);
    }
  }
  CHECK(as_double(run.x(0)[0]) - first > 4 * unit);
  CHECK(first + apart - as_double(run.x(1)[0]) > 4 * unit);
}

// A ten-thousandth of the weights.
TEMPLATE_TEST_CASE("a remainder takes up any small pull", "", BFloat16, Float16) {
  Rng rng(test_seed(26));
  for (int sample = 0; sample < 200; ++sample) {
    const double begin = std::exp2(8 * rng.uniform() - 4) * (rng.below(2) == 0 ? 1 : -1);
    const auto pull = static_cast<float>(1e-4 * begin);
    TestType w[1];
    BFloat16 remainder[1];
    float x[1] = {static_cast<float>(begin)};
    combine::split(x, w, remainder, 1);
    for (int round = 0; round < 300; ++round) {
      x[0] = to_float(w[0]);
      combine::add_remainder(x, remainder, 1);
      x[0] += pull;
      combine::split(x, w, remainder, 1);
    }
    CHECK(as_double(w[0]) ==
          Approx(begin * 1.03).margin(unit_at<TestType>(begin * 1.03)).epsilon(0));
  }
}

TEMPLATE_TEST_CASE("a weight and its remainder are the value to 2^-17 of it", "", BFloat16,
                   Float16) {
  Rng rng(test_seed(27));
  constexpr std::size_t count = 333;
  std::vector<float> x(count), again(count);
  for (float& value : x)
    value = static_cast<float>(std::exp2(20 * rng.uniform() - 10) * rng.normal());
  std::vector<TestType> w(count);
  std::vector<BFloat16> remainder(count);
  combine::split(x.data(), w.data(), remainder.data(), count);
  codec::widen(again.data(), w.data(), count);
  combine::add_remainder(again.data(), remainder.data(), count);
  for (std::size_t e = 0; e < count; ++e) {
    CHECK(w[e].bits == from_double<TestType>(x[e]).bits);
    CHECK(std::abs(again[e] - x[e]) <= 0x1p-17F * std::abs(x[e]));
  }
  for (const float bad : {INFINITY, -INFINITY, NAN, 3.4e38F}) {
    x[7] = bad;
    combine::split(x.data(), w.data(), remainder.data(), count);
    CHECK(to_float(remainder[7]) == 0);
    CHECK(to_float(remainder[8]) == again[8] - to_float(w[8]));
  }
}

TEMPLATE_TEST_CASE("16-bit weights resume bit for bit", "", BFloat16, Float16, Mixed) {
  std::vector<DeviceSetting> settings = device_settings();
  for (const char* name : {"awc", "atc", "d2"}) settings.push_back({name, {}, "int8"});
  settings.push_back({"sparta", {{"fraction", "0.5"}}});
  settings.push_back({"choco"});
  for (const DeviceSetting& setting : settings) {
    if (setting.algorithm == "gossip_pga" || setting.staleness > 0) continue;
    INFO(text_of(setting));
    const auto whole = all_device_rounds<TestType>(3, setting, on_host);
    std::vector<std::vector<double>> resumed(3);
    local::run(3, [&](const Group& group) {
      DeviceRun<TestType> first(group, setting, nullptr);
      first.go(0, 4);
      DeviceRun<TestType> second(group, setting, nullptr);
      second.take_up(first);
      second.go(4, device_round_count);
      resumed[static_cast<std::size_t>(group.rank())] = second.outcome();
    });
    CHECK(resumed == whole);
  }
}

TEST_CASE("a state without the remainders of 16-bit weights is refused") {
  local::run(2, [](const Group& group) {
    const DeviceSetting setting{"awc"};
    DeviceModel<BFloat16> model(group.rank(), nullptr);
    Worker worker(group, stencil::ring(), model.views(), device_options(setting, nullptr, {}));
    worker.step([&] { model.step(0, group.rank()); });
    std::vector<TensorView> saved = worker.state();
    std::erase_if(saved, [](const TensorView& view) { return view.name == "mixer.remainder"; });
    Worker other(group, stencil::ring(), model.views(), device_options(setting, nullptr, {}));
    std::string why = "not refused";
    try {
      other.restore(saved);
    } catch (const Error& error) {
      why = error.what();
    }
    require(why.find("nothing where this worker has \"mixer.remainder\"") != std::string::npos,
            ErrorKind::internal, "{}", why);
  });
}

TEST_CASE("16-bit weights that a program loads and publishes have no remainder") {
  local::run(3, [](const Group& group) {
    std::vector<BFloat16> x(elements, to_bfloat16(group.rank() == 0 ? 1 : 1 + 0x1p-7F));
    WorkerOptions options = quick();
    options.initial = Initial::as_is;
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    for (int round = 0; round < 3; ++round) worker.step([] {});  // the mean is no bf16 number
    std::ranges::fill(x, BFloat16{});
    worker.republish();
    worker.step([] {});
    for (const BFloat16 value : x)
      require(to_float(value) == 0, ErrorKind::internal, "{} is left", to_float(value));
  });
}

TEST_CASE("a message of f16 with a value beyond its range is not finite") {
  const AlignedBuffer room(elements * sizeof(Float16));
  Float16* const to = room.as<Float16>().data();
  std::vector<float> values(elements, 65519);
  CHECK(combine::stream(to, values.data(), elements));
  values.back() = 65520;
  CHECK_FALSE(combine::stream(to, values.data(), elements));
}

TEST_CASE("f16 weights that a rule takes beyond their range end the run with their name") {
  const auto run = [](const Group& group) {
    std::vector<Float16> x(elements, to_float16(40000));
    WorkerOptions options = quick();
    options.algorithm =
        algorithm::by_name("diloco", {{"period", "1"}, {"rate", "1"}, {"momentum", "0.9"}});
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, options);
    for (int round = 0; round < 9; ++round)
      worker.step([&] { std::ranges::fill(x, to_float16(to_float(x[0]) + 9000)); });
  };
  CHECK_THROWS_WITH(local::run(2, run),
                    ContainsSubstring("\"x\" [67] f16") && ContainsSubstring("not finite"));
}

TEST_CASE("averages of 16-bit weights over all workers are refused at the start") {
  for (const char* rule : {"allreduce", "gossip_pga"}) {
    const auto run = [&](const Group& group) {
      DeviceModel<Mixed> model(group.rank(), nullptr);
      WorkerOptions options = quick();
      options.algorithm = algorithm::by_name(rule);
      const Worker worker(group, stencil::ring(), model.views(), options);
    };
    CHECK_THROWS_WITH(local::run(2, run), ContainsSubstring("\"tensor0\" [2051] bf16") &&
                                              ContainsSubstring("algorithm " + std::string(rule)));
  }
}
