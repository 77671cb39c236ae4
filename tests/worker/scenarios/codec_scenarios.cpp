#include "worker/scenarios/codec_scenarios.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fast/codec/codec.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <thread>

#include "support/golden.hpp"
#include "support/rules.hpp"
#include "worker/scenarios/whole_blocks.hpp"

namespace fast::testing {
namespace {

WorkerOptions with(std::string_view codec, std::string_view rule = "awc") {
  WorkerOptions options;
  options.algorithm = algorithm::by_name(rule);
  options.codec = codec::by_name(codec);
  options.initial = Initial::as_is;
  options.deadline = Seconds(20);
  return options;
}

double start_value(int rank, std::size_t e) {
  return std::sin(0.37 * static_cast<double>(e) + 1.3 * rank);
}

template <class T>
std::vector<T> start_vector(int rank, std::size_t count) {
  std::vector<T> x;
  for (std::size_t e = 0; e < count; ++e) x.push_back(static_cast<T>(start_value(rank, e)));
  return x;
}

/// How far apart workers may stay: a few steps of the code for values up to 1.
double resolution(std::string_view codec) {
  if (codec == "identity") return 5e-3;  // as far as the rounds suffice
  if (codec == "fp16") return 0x1p-10;
  return codec.starts_with("bf16") ? 0x1p-7 : 2.0 / 127;
}

/// Of all workers' weights, and of how far they are from it.
template <class T>
void compare_with_mean(const Group& group, const std::vector<T>& x,
                       const std::vector<double>& expected, double tolerance, double apart,
                       const std::string& what) {
  const auto all = group.all_gather({reinterpret_cast<const char*>(x.data()), x.size() * sizeof(T)},
                                    Deadline(Seconds(20)), what);
  for (std::size_t e = 0; e < x.size(); ++e) {
    double mean = 0;
    for (const std::string& bytes : all) {
      mean += double(reinterpret_cast<const T*>(bytes.data())[e]) / group.size();
    }
    expect(
        std::abs(mean - expected[e]) <= tolerance,
        fmt::format("{}: the mean of element {} is {} instead of {}", what, e, mean, expected[e]));
    expect(std::abs(double(x[e]) - mean) <= apart,
           fmt::format("{}: element {} is {}, its mean {}", what, e, x[e], mean));
  }
}

template <class T>
void keep_the_mean(const Group& group, std::string_view codec, std::string_view rule) {
  constexpr std::size_t count = 2500;
  auto x = start_vector<T>(group.rank(), count);
  std::vector<double> mean(count);
  for (int r = 0; r < group.size(); ++r) {
    const auto of_worker = start_vector<T>(r, count);
    for (std::size_t e = 0; e < count; ++e) mean[e] += double(of_worker[e]) / group.size();
  }
  WorkerOptions options = with(codec, rule);
  options.lazy_weights = true;
  Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
  for (int t = 0; t < 60; ++t) worker.step([] {}, {.learning_rate = 0.1});
  const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-12;
  compare_with_mean(group, x, mean, tolerance, 4 * resolution(codec),
                    fmt::format("{} with {}", rule, codec));
}

}  // namespace

void every_codec_keeps_the_mean_and_comes_to_agree(const Group& group) {
  for (const auto codec : codecs_of_weights()) {
    keep_the_mean<double>(group, codec, "awc");
    keep_the_mean<float>(group, codec, "awc");
  }
  for (const char* rule :
       {"atc", "d2", "edm", "gradient_tracking", "quasi_global_momentum", "averaged_momentum"}) {
    keep_the_mean<double>(group, "bf16", rule);
    keep_the_mean<double>(group, "int8", rule);
  }
}

void coded_rules_train_to_the_common_optimum(const Group& group) {
  const double optimum = (group.size() - 1) / 2.0;
  for (const auto codec : {"bf16", "int8"}) {
    for (const auto rule : algorithm::names()) {
      const auto traits = algorithm::by_name(rule).traits();
      if (!traits.precision.why_exact.empty() ||
          traits.topology.mixing == algorithm::MixingRequirement::matching)
        continue;
      if (traits.precision.least_bits > 8 && codec == std::string_view("int8")) continue;
      std::vector<float> x(700, static_cast<float>(group.rank()));
      Worker worker(group, topology_for(rule), {view_of("x", std::span(x))}, with(codec, rule));
      for (int t = 0; t < 300; ++t) {
        worker.step(
            [&] {
              for (float& value : x) value -= 0.02F * (value - static_cast<float>(group.rank()));
            },
            {.learning_rate = 0.02});
      }
      worker.await_finish();
      std::vector<float> mean(x.size());
      worker.mean_model({view_of("x", std::span(mean))});
      expect(std::abs(mean[699] - optimum) <= 0.06 * std::max(1.0, optimum),
             fmt::format("{} with {}: {} instead of {}", rule, codec, mean[699], optimum));
    }
  }
}

void weights_are_adopted_and_finished_exactly_under_any_codec(const Group& group) {
  for (const auto codec : codecs_of_weights()) {
    for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{2}}) {
      constexpr std::size_t count = 600;
      auto x = start_vector<float>(group.rank(), count);
      WorkerOptions options = with(codec);
      options.initial = Initial::broadcast;
      options.staleness = staleness;
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
      expect(x == start_vector<float>(0, count), fmt::format("{}: adopted exactly", codec));
      for (int t = 0; t < 5; ++t) {
        worker.step([&] {
          for (float& value : x) value += 0.01F * static_cast<float>(group.rank());
        });
      }
      worker.await_finish();
      std::vector<float> mean(count);
      worker.mean_model({view_of("x", std::span(mean))});
      std::vector<double> expected(mean.begin(), mean.end());
      compare_with_mean(group, x, expected, 1e-6, 10, fmt::format("{}: mean model", codec));
    }
  }
}

void coded_messages_are_as_short_as_they_are_said_to_be(const Group& group) {
  constexpr std::size_t count = 25600;
  const auto bytes = [&](WorkerOptions options) {
    auto x = start_vector<float>(group.rank(), count);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, std::move(options));
    for (int t = 0; t < 2; ++t) worker.step([] {});
    return worker.stats().bytes_sent / 2 / std::min(2, group.size() - 1);
  };
  if (group.size() == 1) return;
  const double whole = 4 * count;
  expect(bytes(with("identity")) == whole, "identity");
  expect(bytes(with("bf16")) == whole / 2 && bytes(with("fp16")) == whole / 2, "16 bits");
  expect(bytes(with("int8")) == whole / 4 + count / 256 * 4, "int8");
  const double entries = bytes(with("identity", "choco"));
  expect(entries <= whole / 30, fmt::format("choco sends {} of {} bytes", entries, whole));
}

void coded_messages_do_not_tear(const Group& group) {
  for (const char* codec : {"bf16", "int8"}) {
    WorkerOptions options = with(codec);
    options.staleness = unbounded_staleness;
    std::vector<float> x(3001, 1.0F + static_cast<float>(group.rank()));
    Worker worker(group, stencil::torus2d(), {view_of("x", std::span(x))}, options);
    for (int t = 0; t < 100; ++t) {
      worker.step([] { std::this_thread::sleep_for(std::chrono::microseconds(50)); });
      const double slack = 0.1 * group.size();
      expect(x[0] > 1 - slack && x[0] < group.size() + slack, "values stay in range");
      // Equal elements have equal codes; only the last group, of another length, may be coded anew.
      expect(has_whole_blocks(std::span<const float>(x), 1e-4F),
             fmt::format("{}: no torn value is combined", codec));
    }
  }
}

void buffers_stay_exact_under_any_codec(const Group& group) {
  const float third = 1.0F / 3;
  for (const auto codec : codecs_of_weights()) {
    std::vector<float> weight(5, 1.0F), statistic(3, third);
    Worker worker(
        group, stencil::ring(),
        {view_of("weight", std::span(weight)), view_of("mean", std::span(statistic), Role::buffer)},
        with(codec));
    for (int t = 0; t < 5; ++t) worker.step([] {});
    expect(statistic[2] == third, fmt::format("{}: {}", codec, statistic[2]));
  }
}

void memory_may_lie_differently_on_each_worker_under_any_codec(const Group& group) {
  for (const char* codec : {"bf16", "int8", "fp16"}) {
    const auto value = static_cast<float>(group.rank());
    std::vector<float> arena(907, value), a(300, value), b(7, value), c(600, value);
    const bool flat = group.rank() % 2 == 0;
    const std::span<float> whole(arena);
    const std::vector<TensorView> together{view_of("a", whole.subspan(0, 300)),
                                           view_of("b", whole.subspan(300, 7)),
                                           view_of("c", whole.subspan(307))};
    const std::vector<TensorView> apart{view_of("a", std::span(a)), view_of("b", std::span(b)),
                                        view_of("c", std::span(c))};
    WorkerOptions options = with(codec);
    options.weights = WeightRule::uniform_rows;
    Worker worker(group, stencil::complete(), flat ? together : apart, options);
    worker.step([] {});
    const double mean = (group.size() - 1) / 2.0;
    for (const float x :
         {flat ? arena[0] : a[0], flat ? arena[303] : b[3], flat ? arena[906] : c[599]}) {
      expect(std::abs(x - mean) <= 0.02 * group.size(), fmt::format("{}: {}", codec, x));
    }
    worker.rebind(flat ? apart : together);
  }
}

void codecs_that_do_not_fit_are_refused_everywhere(const Group& group) {
  for (const char* rule : {"none", "event_triggered", "push_sum", "allreduce"}) {
    std::vector<float> x(5);
    std::string text;
    try {
      const Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, with("bf16", rule));
    } catch (const Error& error) {
      expect(error.everywhere(), "refused on every worker alike");
      text = error.what();
    }
    expect(text.find("with codec bf16; it runs with identity only, as") != std::string::npos,
           fmt::format("{}: {}", rule, text));
  }
}

}  // namespace fast::testing
