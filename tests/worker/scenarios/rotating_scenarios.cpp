#include "worker/scenarios/rotating_scenarios.hpp"

#include <cmath>
#include <fast/topology/stencil.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <numeric>

#include "support/golden.hpp"
#include "worker/quick.hpp"
#include "worker/scenarios/whole_blocks.hpp"

namespace fast::testing {
namespace {

/// Momentum on the gradient of (x_e - e - rank)² / 2, as a part of a pass.
template <class T>
struct Momentum {
  int rank;
  std::vector<T> m;
  Momentum(int of_rank, std::size_t count) : rank(of_rank), m(count) {}
  void operator()(std::size_t first, std::span<T> x) {
    for (std::size_t e = 0; e < x.size(); ++e) {
      T& moment = m[first + e];
      moment = T(0.5) * moment + (x[e] - static_cast<T>((first + e) % 10) - static_cast<T>(rank));
      x[e] -= T(0.125) * moment;
    }
  }
};

template <class T>
void compare_arenas(const Group& group, const TopologyRule& rule, std::size_t count) {
  const auto start = static_cast<T>(group.rank()) / T(3);
  std::vector<T> fixed(count, start), rotating(count, start);
  Worker of_fixed(group, rule, {view_of("x", std::span(fixed))}, quick());
  Worker of_rotating(group, rule, {view_of("x", std::span(rotating))}, quick());
  Momentum<T> fixed_step(group.rank(), count);
  const PartUpdate<T> rotating_step = Momentum<T>(group.rank(), count);
  for (int t = 0; t < 9; ++t) {
    of_fixed.step([&] { fixed_step(0, fixed); });
    of_rotating.begin_round();
    RotatingArena<T> arena(of_rotating);
    arena.end_round(rotating_step);
    const T* now = arena.weights();
    for (std::size_t e = 0; e < count; ++e) {
      expect(now[e] == fixed[e], fmt::format("{}, {} elements, round {}, element {}: {} and {}",
                                             rule.name(), count, t, e, now[e], fixed[e]));
    }
  }
  expect(rotating[0] == start, "the tensors given stay as they were in training");
  of_rotating.await_finish();
  expect(rotating == fixed, "and hold the final weights after it");
  std::vector<T> mean_fixed(count), mean_rotating(count);
  of_fixed.await_finish();
  of_fixed.mean_model({view_of("x", std::span(mean_fixed))});
  of_rotating.mean_model({view_of("x", std::span(mean_rotating))});
  expect(mean_fixed == mean_rotating, "the mean models are the same");
}

}  // namespace

void a_rotating_arena_trains_as_a_fixed_one(const Group& group) {
  compare_arenas<float>(group, stencil::ring(), 5003);
  compare_arenas<double>(group, stencil::torus2d(), 2048);
  compare_arenas<float>(group, stencil::ring(true), 1);
}

void a_rotating_arena_is_not_torn(const Group& group) {
  WorkerOptions options = quick();
  options.staleness = unbounded_staleness;
  std::vector<double> x(30011, group.rank());
  Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
  const PartUpdate<double> nothing = [](std::size_t, std::span<double>) {};
  for (int t = 0; t < 50; ++t) {
    worker.begin_round();
    RotatingArena<double> arena(worker);
    arena.end_round(nothing);
    const double* now = arena.weights();
    expect(now[0] >= 0 && now[0] <= group.size() - 1, "values stay within the workers' range");
    expect(has_whole_blocks(std::span(now, x.size())), "no torn value is combined");
  }
}

void misfits_do_not_rotate(const Group& group) {
  std::vector<float> x(3);
  const auto refusal = [&](WorkerOptions options, auto type) {
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, std::move(options));
    try {
      RotatingArena<decltype(type)> arena(worker);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto expect_refusal = [&](const std::string& text, const char* why) {
    expect(text.find(why) != std::string::npos, fmt::format("\"{}\" says {}", text, why));
  };
  expect(refusal(quick(), float{}).empty(), "awc over floats rotates");
  expect_refusal(refusal(quick(), double{}), "give parameters of one type");
  WorkerOptions tracking = quick();
  tracking.algorithm = algorithm::gradient_tracking();
  expect_refusal(refusal(tracking, float{}), "take awc or pairwise");
  WorkerOptions coded = quick();
  coded.codec = codec::by_name("bf16");
  expect_refusal(refusal(coded, float{}), "take the codec identity");
  WorkerOptions healing = quick();
  healing.not_finite = NotFinite::heal;  // a step of NaN would be published
  expect_refusal(refusal(healing, float{}), "take NotFinite::abort or a fixed arena");
}

}  // namespace fast::testing
