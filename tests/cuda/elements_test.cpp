// The kernels' bodies, run thread by thread on the host.
#include <algorithm>
#include <limits>
#include <tuple>

#include "cuda/averaging/average_elements.hpp"
#include "cuda/samples.hpp"
#include "nn/cuda/optimizer_elements.hpp"
#include "nn/kernels/rules.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

template <int Width, class Elements>
void run_all(const Elements& elements, std::size_t count, std::size_t threads = 3) {
  for (std::size_t t = 0; t < threads; ++t) cuda::run_share<Width>(elements, t, threads, count);
}

template <int Width, class Elements>
void run_table(const Elements& elements, const combine::RunTable& table) {
  for (std::uint32_t chunk = 0; chunk < table.chunks; ++chunk) {
    for (std::size_t t = 0; t < 3; ++t) cuda::run_chunk<Width>(elements, table, chunk, t, 3);
  }
}

/// The average of a sample as a launch does it.
template <int Width, class T, class Stored>
void average_runs(const AverageSample<T, Stored>& sample, T* current, Stored* next,
                  bool sums_first = false) {
  const cuda::AverageLaunch<T, Stored> launch{
      next,
      sample.own.data(),
      sample.values.data(),
      sample.weights.data(),
      static_cast<int>(sample.values.size()),
      combine::table_of({current, 0, sample.own.size(), 0, 0, 0, 0}),
      sums_first};
  cuda::with_average(launch,
                     [&](const auto& elements) { run_table<Width>(elements, launch.table); });
}

/// The host's kernels fuse multiply-adds only on processors that can.
template <class T>
void check_equal(const std::vector<T>& found, const std::vector<T>& expected) {
  if (__builtin_cpu_supports("fma")) REQUIRE(differing(found, expected) == 0);
}

template <class T>
void check_close(const std::vector<T>& found, const std::vector<T>& expected) {
  const double unit = 8 * double{std::numeric_limits<T>::epsilon()};
  for (std::size_t e = 0; e < found.size(); ++e)
    REQUIRE(double{found[e]} == Approx(double{expected[e]}).epsilon(unit).margin(unit));
}

template <int Width, class T, class Stored>
void check_average_of(Rng& rng, std::size_t count, std::size_t degree) {
  AverageSample<T, Stored> sample(rng, count, degree);
  for (const bool rotating : {false, true}) {
    std::vector<T> expected = sample.current, current = sample.current;
    std::vector<Stored> expected_next(count);
    sample.average_on_host(rotating ? nullptr : expected.data(), expected_next.data());
    average_runs<Width>(sample, rotating ? nullptr : current.data(), sample.next.data());
    check_equal(current, expected);
    check_equal(sample.next, expected_next);
  }
  std::vector<T> expected(count), current = sample.current;
  mixing::average_apart(expected.data(), current.data(), sample.own.data(), sample.values,
                        sample.weights, count);
  average_runs<Width>(sample, current.data(), sample.next.data(), true);
  check_equal(current, expected);
}

/// Accesses of 16 bytes to the slots, and to the weights.
template <class T, class Stored>
void check_average(Rng& rng, std::size_t count, std::size_t degree) {
  check_average_of<16 / sizeof(Stored), T, Stored>(rng, count, degree);
  check_average_of<16 / sizeof(T), T, Stored>(rng, count, degree);
}

/// Steps of nn::Optimizer against those of the kernel's update, on the same gradients.
template <class T, class MakeUpdate>
void check_steps(const nn::OptimizerSpec& spec, const MakeUpdate& make_update) {
  const std::size_t count = 37;
  Rng rng(11);
  nn::Optimizer<T> reference(spec, count);
  auto expected = random_vector<T>(rng, count), weights = expected;
  std::vector<T> first(count), second(count);
  for (int step = 1; step <= 5; ++step) {
    const auto gradients = random_vector<T>(rng, count);
    reference.step(expected, gradients);
    const auto update = make_update(gradients.data(), first.data(), second.data(), step);
    run_all<16 / sizeof(T)>(cuda::UpdateElements<T, decltype(update)>{weights.data(), update},
                            count);
    check_close(weights, expected);
  }
}

}  // namespace

TEST_CASE("every element is in the share of one thread, whole packs first") {
  for (const std::size_t count : {0, 1, 3, 4, 5, 8, 31, 64, 1001}) {
    for (const std::size_t threads : {1, 2, 7, 256, 2000}) {
      std::vector<int> wide(count), one(count);
      for (std::size_t t = 0; t < threads; ++t) {
        cuda::for_share<4>(
            t, threads, count,
            [&](std::size_t e) {
              for (std::size_t i = 0; i < 4; ++i) ++wide.at(e + i);
            },
            [&](std::size_t e) { ++one.at(e); });
      }
      for (std::size_t e = 0; e < count; ++e) {
        REQUIRE(wide[e] == (e < count / 4 * 4 ? 1 : 0));
        REQUIRE(wide[e] + one[e] == 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("16-bit elements are converted as on the host, bit for bit", "", BFloat16,
                   Float16) {
  const auto converted = [](float value) {
    TestType half;
    cuda::convert(value, half);
    return half;
  };
  const auto narrowed = [](float value) {
    if constexpr (std::is_same_v<TestType, BFloat16>) return to_bfloat16(value);
    if constexpr (std::is_same_v<TestType, Float16>) return to_float16(value);
  };
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    float wide = 0;
    cuda::convert(TestType{static_cast<std::uint16_t>(bits)}, wide);
    const float expected = to_float(TestType{static_cast<std::uint16_t>(bits)});
    REQUIRE(memcmp(&wide, &expected, sizeof wide) == 0);
    for (const std::uint32_t low : {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7000, 0x7fff,
                                    0x8000, 0x8001, 0xf000, 0xffff}) {
      const std::uint32_t all = bits << 16 | low;
      float value = 0;
      memcpy(&value, &all, sizeof value);
      const TestType narrow = converted(value);
      if (value == value)
        REQUIRE(narrow.bits == narrowed(value).bits);
      else
        REQUIRE(to_float(narrow) != to_float(narrow));
    }
  }
}

TEMPLATE_TEST_CASE("averages equal the host's, bit for bit", "", (std::tuple<float, float>),
                   (std::tuple<double, double>), (std::tuple<float, BFloat16>)) {
  using T = std::tuple_element_t<0, TestType>;
  using Stored = std::tuple_element_t<1, TestType>;
  Rng rng(7);
  for (const std::size_t count : {1, 7, 8, 31, 64, 257, 4096, 9001}) {
    for (std::size_t degree = 0; degree <= 10; ++degree)
      check_average<T, Stored>(rng, count, degree);
  }
}

TEMPLATE_TEST_CASE("one launch averages all tensors, whatever their sizes and places", "",
                   (std::tuple<float, float>), (std::tuple<double, double>),
                   (std::tuple<float, BFloat16>)) {
  using T = std::tuple_element_t<0, TestType>;
  using Stored = std::tuple_element_t<1, TestType>;
  Rng rng(9);
  for (const std::size_t degree : {0, 1, 3, 9}) {
    const std::vector<std::size_t> counts{4096, 1, 3, 4097, 64, 8192, 5, 12289};
    std::size_t all = 0;
    for (const std::size_t count : counts) all += count;
    AverageSample<T, Stored> sample(rng, all, degree);
    std::vector<T> expected = sample.current;
    std::vector<Stored> expected_next(all);
    sample.average_on_host(expected.data(), expected_next.data());
    // Each tensor is elsewhere, and the last ones are buffers, whose pulls are summed first.
    std::vector<std::vector<T>> tensors;
    std::vector<combine::ElementRun> runs;
    combine::RunTable table{};
    std::size_t first = 0;
    for (const std::size_t count : counts) {
      const bool is_buffer = runs.size() >= 6;
      tensors.emplace_back(sample.current.begin() + static_cast<std::ptrdiff_t>(first),
                           sample.current.begin() + static_cast<std::ptrdiff_t>(first + count));
      runs.push_back({tensors.back().data(), first, count, first * sizeof(Stored),
                      first * sizeof(T), table.chunks, is_buffer ? 1U : 0U});
      table.chunks += combine::chunks_of(count);
      ++table.count;
      for (std::size_t e = first; is_buffer && e < first + count; ++e) {
        T pull = 0, value;
        for (std::size_t j = 0; j < degree; ++j) {
          cuda::convert(sample.neighbors[j][e], value);
          pull = cuda::fused(sample.weights[j], value - sample.current[e], pull);
        }
        expected[e] = sample.current[e] + pull;
        cuda::convert(expected[e], expected_next[e]);
      }
      first += count;
    }
    table.runs = runs.data();
    const cuda::AverageLaunch<T, Stored> launch{sample.next.data(),       sample.own.data(),
                                                sample.values.data(),     sample.weights.data(),
                                                static_cast<int>(degree), table};
    cuda::with_average(launch,
                       [&](const auto& elements) { run_table<16 / sizeof(T)>(elements, table); });
    std::vector<T> found;
    for (const auto& tensor : tensors) found.insert(found.end(), tensor.begin(), tensor.end());
    check_equal(found, expected);
    check_equal(sample.next, expected_next);
  }
}

TEST_CASE("a chunk finds its run, also beside empty ones") {
  std::vector<combine::ElementRun> runs;
  combine::RunTable table{};
  for (const std::size_t count : {1, 4096, 0, 4097, 0, 0, 20000, 1}) {
    runs.push_back({nullptr, 0, count, 0, 0, table.chunks, 0});
    table.chunks += combine::chunks_of(count);
    ++table.count;
  }
  table.runs = runs.data();
  std::vector<std::size_t> found;
  for (std::uint32_t chunk = 0; chunk < table.chunks; ++chunk)
    found.push_back(static_cast<std::size_t>(&cuda::run_of(table, chunk) - runs.data()));
  CHECK(found == std::vector<std::size_t>{0, 1, 3, 3, 6, 6, 6, 6, 6, 7});
}

TEMPLATE_TEST_CASE("steps of SGD are nn's", "", float, double) {
  using T = TestType;
  for (const nn::SgdOptions& options :
       {nn::SgdOptions{0.1, 0, 0}, nn::SgdOptions{0.1, 0, 0.01}, nn::SgdOptions{0.1, 0.9, 0.01},
        nn::SgdOptions{0.1, 0.9, 0.01, true}}) {
    check_steps<T>(options, [&](const T* gradients, T* momentum, T*, int) {
      return cuda::SgdUpdate<T>{nn::rule_of<T>(options), gradients,
                                options.momentum > 0 ? momentum : nullptr};
    });
  }
}

TEMPLATE_TEST_CASE("steps of Adam and AdamW are nn's", "", float, double) {
  using T = TestType;
  for (const bool decoupled : {false, true}) {
    const nn::AdamOptions options{.weight_decay = 0.01, .decoupled_decay = decoupled};
    check_steps<T>(options, [&](const T* gradients, T* first, T* second, int step) {
      return cuda::AdamUpdate<T>{nn::rule_of<T>(options, step), gradients, first, second};
    });
  }
}

TEMPLATE_TEST_CASE("a step captured once and launched again takes the rule of each time", "", float,
                   double) {
  using T = TestType;
  const std::size_t count = 37;
  for (const bool adam : {false, true}) {
    Rng rng(12);
    nn::SgdOptions sgd{0.1, 0.9, 0.01};
    nn::AdamOptions adamw{.weight_decay = 0.01, .decoupled_decay = true};
    nn::Optimizer<T> reference(adam ? nn::OptimizerSpec(adamw) : nn::OptimizerSpec(sgd), count);
    auto expected = random_vector<T>(rng, count), weights = expected;
    std::vector<T> gradients(count), first(count), second(count);
    nn::SgdRule<T> sgd_rule{};
    nn::AdamRule<T> adam_rule{};
    // As a graph is: all places are told here, before there is a rule or a gradient.
    const cuda::UpdateElements<T, cuda::SgdUpdate<T>> sgd_step{
        weights.data(), {{}, gradients.data(), first.data()}};
    const cuda::UpdateElements<T, cuda::AdamUpdate<T>> adam_step{
        weights.data(), {{}, gradients.data(), first.data(), second.data()}};
    for (int step = 1; step <= 6; ++step) {
      std::ranges::copy(random_vector<T>(rng, count), gradients.begin());
      sgd.learning_rate = adamw.learning_rate = 0.1 / step;
      reference.set_learning_rate(0.1 / step);
      reference.step(expected, gradients);
      cuda::StoreRule<nn::SgdRule<T>>{nn::rule_of<T>(sgd), &sgd_rule}.at(0);
      cuda::StoreRule<nn::AdamRule<T>>{nn::rule_of<T>(adamw, step), &adam_rule}.at(0);
      if (adam)
        run_all<16 / sizeof(T)>(adam_step.with(adam_rule), count);
      else
        run_all<16 / sizeof(T)>(sgd_step.with(sgd_rule), count);
      check_close(weights, expected);
    }
  }
}
