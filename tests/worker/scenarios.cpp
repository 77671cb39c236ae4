#include "worker/scenarios.hpp"

#include <chrono>
#include <cmath>
#include <fast/core/random.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <numeric>
#include <thread>

#include "support/golden.hpp"
#include "worker/codec_scenarios.hpp"
#include "worker/quick.hpp"
#include "worker/remote_scenarios.hpp"
#include "worker/rotating_scenarios.hpp"
#include "worker/rule_scenarios.hpp"

namespace fast::testing {
namespace {

/// A worker whose model is one vector, filled with `value`.
struct Constant {
  std::vector<double> x;
  Worker worker;
  Constant(const Group& group, const TopologyRule& rule, double value,
           WorkerOptions options = quick(), std::size_t count = 5)
      : x(count, value), worker(group, rule, {view_of("x", std::span(x))}, std::move(options)) {}
};

void expect_near(double value, double expected, const std::string& what, double tolerance = 1e-14) {
  expect(std::abs(value - expected) <= tolerance * std::max(1.0, std::abs(expected)),
         fmt::format("{}: {} instead of {}", what, value, expected));
}

template <class Action>
std::string error_of(const Action& action, ErrorKind kind, bool everywhere) {
  try {
    action();
  } catch (const Error& error) {
    expect(error.kind() == kind && error.everywhere() == everywhere,
           fmt::format("the wrong kind of error: {}", error.what()));
    return error.what();
  }
  expect(false, "no error was thrown");
  return {};
}

TopologyRule star(int center) {
  return {"star", [center](int workers) {
            std::vector<std::vector<int>> in(static_cast<std::size_t>(workers));
            for (int w = 0; w < workers; ++w) {
              if (w == center) continue;
              in[static_cast<std::size_t>(w)] = {center};
              in[static_cast<std::size_t>(center)].push_back(w);
            }
            return Schedule(Topology("star", in));
          }};
}

std::vector<double> power_of_ring(int workers, int rounds) {
  std::vector<double> x(static_cast<std::size_t>(workers));
  std::iota(x.begin(), x.end(), 0.0);
  for (int t = 0; t < rounds; ++t) {
    std::vector<double> next(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      next[i] = (x[i] + x[(i + x.size() - 1) % x.size()]) / 2;
    x = next;
  }
  return x;
}

}  // namespace

void one_round_closed_forms(const Group& group) {
  const int n = group.size(), r = group.rank();
  const int left = (r + n - 1) % n, right = (r + 1) % n;
  {
    Constant c(group, stencil::ring(true), r);
    c.worker.step([] {});
    expect_near(c.x[4], n == 1 ? 0 : (r + left) / 2.0, "directed ring");
  }
  {
    Constant c(group, stencil::ring(), r);
    c.worker.step([] {});
    const double expected = n == 1 ? 0 : n == 2 ? 0.5 : (left + r + right) / 3.0;
    expect_near(c.x[0], expected, "two-way ring");
  }
  {
    WorkerOptions options = quick();
    options.weights = WeightRule::uniform_rows;
    const int center = n / 2;
    Constant c(group, star(center), r, options);
    c.worker.step([] {});
    expect_near(c.x[2], r == center ? (n - 1) / 2.0 : (r + center) / 2.0, "star");
  }
  {
    Constant tiny(group, stencil::ring(true), 0x1p-256);
    tiny.worker.step([] {});
    expect(tiny.x[0] == 0x1p-256, "averages of 2^-256 are exact");
  }
}

void mean_is_kept(const Group& group) {
  for (const auto& rule : {stencil::ring(), stencil::torus2d(), stencil::grid2d()}) {
    const double start = std::sqrt(group.rank() + 2.0);
    double mean = 0;
    for (int r = 0; r < group.size(); ++r) mean += std::sqrt(r + 2.0) / group.size();
    Constant c(group, rule, start);
    for (int t = 0; t < 200; ++t) c.worker.step([] {});
    c.worker.await_finish();
    std::vector<double> out(c.x.size());
    c.worker.mean_model({view_of("x", std::span(out))});
    expect_near(out[0], mean, rule.name() + " keeps the mean", 1e-13);
    expect_near(c.x[0], mean, rule.name() + " reaches the mean", 1e-9);
  }
}

void complete_atc_equals_allreduce(const Group& group) {
  std::vector<double> of_atc(7, 1.0), of_allreduce(7, 1.0);
  const auto train = [&](std::vector<double>& x, std::shared_ptr<algorithm::Algorithm> rule) {
    WorkerOptions options = quick();
    options.algorithm = std::move(rule);
    options.weights = WeightRule::uniform_rows;
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, options);
    std::vector<double> momentum(x.size());
    for (int t = 0; t < 30; ++t) {
      worker.step([&] {
        for (std::size_t e = 0; e < x.size(); ++e) {
          const double gradient =
              (1 + group.rank()) * (x[e] - static_cast<double>(e) + group.rank());
          momentum[e] = 0.9 * momentum[e] + gradient;
          x[e] -= 0.02 * momentum[e];
        }
      });
    }
  };
  train(of_atc, algorithm::atc());
  train(of_allreduce, algorithm::allreduce());
  for (std::size_t e = 0; e < of_atc.size(); ++e) {
    expect_near(of_atc[e], of_allreduce[e], "atc on the complete graph against allreduce", 1e-12);
  }
}

void slow_worker_on_directed_ring_is_exact(const Group& group) {
  Constant c(group, stencil::ring(true), group.rank(), quick(), 1000);
  Rng rng(11);
  constexpr int rounds = 60;
  for (int t = 0; t < rounds; ++t) {
    c.worker.step([&] {
      if (group.rank() == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(rng.below(3000)));
    });
    const auto expected = power_of_ring(group.size(), t + 1);
    expect_near(c.x[999], expected[static_cast<std::size_t>(group.rank())],
                fmt::format("round {}", t));
  }
}

void broadcast_gives_all_worker_0s_weights(const Group& group) {
  WorkerOptions options = quick();
  options.initial = Initial::broadcast;
  const Constant c(group, stencil::ring(), 100.0 + group.rank(), options);
  expect(c.x[3] == 100.0, "weights are worker 0's");
}

void buffers_are_averaged_and_integers_left_alone(const Group& group) {
  const int n = group.size();
  std::vector<float> weight{static_cast<float>(group.rank())};
  std::vector<float> statistic{static_cast<float>(group.rank())};
  std::vector<std::int64_t> batches{group.rank()};
  for (const char* name : {"awc", "atc"}) {
    weight = statistic = {static_cast<float>(group.rank())};
    WorkerOptions options = quick();
    options.algorithm = algorithm::by_name(name);
    options.weights = WeightRule::uniform_rows;
    Worker worker(
        group, stencil::complete(),
        {view_of("weight", std::span(weight)), view_of("mean", std::span(statistic), Role::buffer),
         view_of("batches", std::span(batches), Role::buffer)},
        options);
    worker.step([&] { statistic[0] += 1; });
    // awc: W_ii·(after the step) + Σ W_ij·(published before it); atc publishes after it.
    const double mean = (n - 1) / 2.0;
    const double expected = name == std::string("awc") ? mean + 1.0 / n : mean + 1;
    expect_near(statistic[0], expected, fmt::format("buffer under {}", name), 1e-6);
    expect_near(weight[0], mean, "weight", 1e-6);
    expect(batches[0] == group.rank(), "integer buffers stay");
  }
}

void sixteen_bit_weights_average(const Group& group) {
  std::vector<BFloat16> b(3000, to_bfloat16(static_cast<float>(group.rank())));
  std::vector<Float16> h(7, to_float16(static_cast<float>(2 * group.rank())));
  WorkerOptions options = quick();
  options.weights = WeightRule::uniform_rows;
  for (const std::int64_t staleness : {std::int64_t{0}, unbounded_staleness}) {
    options.staleness = staleness;
    b.assign(b.size(), to_bfloat16(static_cast<float>(group.rank())));
    h.assign(h.size(), to_float16(static_cast<float>(2 * group.rank())));
    Worker worker(group, stencil::complete(),
                  {view_of("b", std::span(b)), view_of("h", std::span(h))}, options);
    if (staleness == 0) {
      worker.step([] {});
      const float mean = static_cast<float>(group.size() - 1) / 2;
      expect_near(to_float(b[2999]), mean, "bf16", 1.0 / 128);
      expect_near(to_float(h[6]), 2 * mean, "f16", 1.0 / 1024);
    } else {
      for (int t = 0; t < 20; ++t) worker.step([] {});
      expect(to_float(b[0]) >= 0 && to_float(b[0]) <= static_cast<float>(group.size() - 1),
             "bf16 stays within the workers' values");
    }
  }
}

void unbounded_staleness_reaches_consensus(const Group& group) {
  WorkerOptions options = quick();
  options.staleness = unbounded_staleness;
  Constant c(group, stencil::torus2d(), group.rank(), options, 3001);
  const Deadline patience(Seconds(40));
  const auto enough = [&] {  // who has finished comes no nearer any more
    for (int worker = 0; worker < group.size(); ++worker)
      if (c.worker.has_finished(worker)) return true;
    return patience.expired() || c.worker.consensus_distance() < 1e-3 * group.size();
  };
  do {  // at least once, though the others may have come to this worker's value by now
    for (int t = 0; t < 20; ++t) {
      c.worker.step([] { std::this_thread::sleep_for(std::chrono::microseconds(100)); });
      const double value = c.x[0];
      expect(value >= 0 && value <= group.size() - 1, "values stay within the workers' range");
      for (const double other : c.x) expect(other == value, "no torn value is combined");
    }
  } while (!enough());
  c.worker.await_finish();
  expect(c.worker.consensus_distance() < 2e-2 * group.size(), "consensus");
  std::int64_t fresh = 0;
  for (const std::string& count : group.all_gather(std::to_string(c.worker.stats().fresh_reads),
                                                   Deadline(Seconds(30)), "counting fresh reads")) {
    fresh += std::stoll(count);
  }
  expect(group.size() == 1 || fresh > 0, "some reads are fresh");
}

void bounded_staleness_holds_its_bound(const Group& group) {
  WorkerOptions options = quick();
  options.staleness = 2;
  Constant c(group, stencil::ring(true), group.rank(), options);
  for (int t = 0; t < 100; ++t) {
    c.worker.step([&] {
      if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    });
  }
  const auto ages = c.worker.stats().ages;
  for (std::size_t age = 3; age < ages.size(); ++age) {
    expect(ages[age] == 0, fmt::format("{} reads are {} rounds old", ages[age], age));
  }
}

void mean_model_and_distance_are_those_of_the_replicas(const Group& group) {
  const int n = group.size();
  WorkerOptions options = quick();
  options.algorithm = algorithm::none();
  Constant c(group, stencil::ring(), group.rank() * group.rank(), options, 4);
  c.worker.await_finish();
  double mean = 0, spread = 0;
  for (int r = 0; r < n; ++r) mean += double(r) * r / n;
  for (int r = 0; r < n; ++r) spread += 4 * (double(r) * r - mean) * (double(r) * r - mean) / n;
  std::vector<double> out(4);
  c.worker.mean_model({view_of("x", std::span(out))});
  expect_near(out[3], mean, "mean model");
  expect_near(c.worker.consensus_distance(), std::sqrt(spread), "consensus distance", 1e-12);
}

void different_models_are_refused_everywhere(const Group& group) {
  if (group.size() == 1) return;
  const bool odd = group.rank() == group.size() - 1;
  const std::string text =
      error_of([&] { Constant(group, stencil::ring(), 0, quick(), odd ? 6 : 5); },
               ErrorKind::mismatch, true);
  const std::string last = fmt::format("worker {} has 6 f64 parameters", group.size() - 1);
  expect(text.find("worker 0 has 5 f64 parameters") != std::string::npos &&
             text.find(last) != std::string::npos,
         "the message names both sides: " + text);
}

void different_options_are_refused_everywhere(const Group& group) {
  if (group.size() == 1) return;
  WorkerOptions options = quick();
  if (group.rank() == 1) options.staleness = 3;
  std::string text =
      error_of([&] { Constant(group, stencil::ring(), 0, options); }, ErrorKind::mismatch, true);
  expect(text.find("staleness 0") != std::string::npos &&
             text.find("staleness 3") != std::string::npos,
         "the message names both: " + text);
  options = quick();
  if (group.rank() == 0) options.mix_every = 0;
  text = error_of([&] { Constant(group, stencil::ring(), 0, options); }, ErrorKind::argument, true);
  expect(text.find("mix_every 0") != std::string::npos, "a bad option of one reaches all: " + text);
}

void nan_loss_stops_everybody_once(const Group& group) {
  Constant c(group, stencil::ring(), 1.0);
  bool original = false;
  try {
    for (int t = 0; t < 1000; ++t) {
      c.worker.step([&] {
        if (t == 7 && group.rank() == group.size() / 2) c.x[0] = NAN;
        return std::isnan(c.x[0]) ? NAN : 1.0;
      });
      expect(!std::isnan(c.x[0]), "NaN has spread");
    }
    expect(false, "nobody stopped");
  } catch (const Error& error) {
    original = error.kind() == ErrorKind::numeric;
    expect(original || error.kind() == ErrorKind::peer_failed, error.what());
    if (original) {
      expect(std::string(error.what()).find("in round 7 is nan") != std::string::npos,
             error.what());
    }
  }
  expect(original == (group.rank() == group.size() / 2), "the failing worker alone reports");
}

void early_finishers_drop_out(const Group& group) {
  Constant c(group, stencil::ring(), group.rank());
  const int rounds = group.rank() == 0 ? 5 : 25;
  for (int t = 0; t < rounds; ++t) c.worker.step([] {});
  c.worker.finish();
  c.worker.await_finish();
  expect(c.worker.round() == rounds, "every worker made its own number of rounds");
  if (group.size() > 1 && group.rank() == 1) {
    expect(c.worker.stats().skipped > 0, "the finished neighbor was left out");
  }
}

void scattered_tensors_and_partial_participation(const Group& group) {
  const int n = group.size();
  std::vector<float> a(5, static_cast<float>(group.rank())),
      frozen(3, static_cast<float>(group.rank()));
  std::vector<double> b(2, group.rank());
  WorkerOptions options = quick();
  options.weights = WeightRule::uniform_rows;
  options.participates = [](const TensorView& view) { return view.name != "frozen"; };
  Worker worker(group, stencil::complete(),
                {view_of("b", std::span(b)), view_of("frozen", std::span(frozen)),
                 view_of("a", std::span(a))},
                options);
  worker.step([] {});
  expect_near(a[4], (n - 1) / 2.0, "f32 tensor", 1e-6);
  expect_near(b[1], (n - 1) / 2.0, "f64 tensor");
  expect(frozen[0] == static_cast<float>(group.rank()), "frozen tensors stay");
}

void mixing_every_third_step(const Group& group) {
  WorkerOptions options = quick();
  options.mix_every = 3;
  Constant c(group, stencil::ring(true), group.rank(), options);
  for (int t = 0; t < 6; ++t) c.worker.step([&] { c.x.assign(c.x.size(), c.x[0] + 1); });
  const auto expected = power_of_ring(group.size(), 2);
  expect_near(c.x[0], 6 + expected[static_cast<std::size_t>(group.rank())], "two combinations");
}

void schedule_change_takes_effect(const Group& group) {
  const int n = group.size();
  Constant c(group, stencil::ring(true), group.rank());
  for (int t = 0; t < 3; ++t) c.worker.step([] {});
  c.worker.set_schedule(stencil::complete());
  c.worker.step([] {});
  expect_near(c.x[0], (n - 1) / 2.0, "the complete graph averages at once", 1e-12);
  for (int t = 0; t < 3; ++t) c.worker.step([] {});
  expect_near(c.x[0], (n - 1) / 2.0, "and goes on", 1e-12);
}

void rebinding_follows_moved_memory(const Group& group) {
  std::vector<double> old_place(5, group.rank()), new_place;
  WorkerOptions options = quick();
  options.weights = WeightRule::uniform_rows;
  Worker worker(group, stencil::complete(), {view_of("x", std::span(old_place))}, options);
  new_place = old_place;
  old_place.assign(5, -1);
  worker.rebind({view_of("x", std::span(new_place))});
  worker.step([] {});
  expect_near(new_place[0], (group.size() - 1) / 2.0, "the new memory is averaged");
  expect(old_place[0] == -1, "the old memory is left alone");
}

void several_workers_live_side_by_side(const Group& group) {
  Constant a(group, stencil::ring(), group.rank()), b(group, stencil::complete(), -group.rank());
  for (int t = 0; t < 10; ++t) {
    a.worker.step([] {});
    b.worker.step([] {});
  }
  expect(a.x[0] >= 0 && b.x[0] <= 0, "two workers do not mix with each other");
}

const std::vector<NamedScenario>& scenarios() {
#define FAST_SCENARIO(name) \
  NamedScenario { #name, name }
  static const std::vector<NamedScenario> all{
      FAST_SCENARIO(one_round_closed_forms),
      FAST_SCENARIO(mean_is_kept),
      FAST_SCENARIO(complete_atc_equals_allreduce),
      FAST_SCENARIO(slow_worker_on_directed_ring_is_exact),
      FAST_SCENARIO(broadcast_gives_all_worker_0s_weights),
      FAST_SCENARIO(buffers_are_averaged_and_integers_left_alone),
      FAST_SCENARIO(sixteen_bit_weights_average),
      FAST_SCENARIO(unbounded_staleness_reaches_consensus),
      FAST_SCENARIO(bounded_staleness_holds_its_bound),
      FAST_SCENARIO(mean_model_and_distance_are_those_of_the_replicas),
      FAST_SCENARIO(different_models_are_refused_everywhere),
      FAST_SCENARIO(different_options_are_refused_everywhere),
      FAST_SCENARIO(nan_loss_stops_everybody_once),
      FAST_SCENARIO(early_finishers_drop_out),
      FAST_SCENARIO(scattered_tensors_and_partial_participation),
      FAST_SCENARIO(mixing_every_third_step),
      FAST_SCENARIO(schedule_change_takes_effect),
      FAST_SCENARIO(rebinding_follows_moved_memory),
      FAST_SCENARIO(several_workers_live_side_by_side),
      FAST_SCENARIO(push_sum_keeps_the_mass),
      FAST_SCENARIO(push_sum_finds_the_mean_whatever_is_read_late),
      FAST_SCENARIO(one_peer_exponential_averages_exactly),
      FAST_SCENARIO(misfits_are_refused_everywhere),
      FAST_SCENARIO(a_missing_learning_rate_is_refused),
      FAST_SCENARIO(d2_takes_lazy_weights_where_it_must),
      FAST_SCENARIO(a_worker_that_does_not_move_does_not_send),
      FAST_SCENARIO(held_messages_stay_in_force_for_slow_readers),
      FAST_SCENARIO(gossip_pga_averages_all),
      FAST_SCENARIO(pairs_average_and_keep_the_mean),
      FAST_SCENARIO(gradient_exchange_adds_the_neighbours_steps),
      FAST_SCENARIO(choco_publishes_weights_for_the_mean_model),
      FAST_SCENARIO(every_rule_trains_and_republishes),
      FAST_SCENARIO(a_rotating_arena_trains_as_a_fixed_one),
      FAST_SCENARIO(a_rotating_arena_is_not_torn),
      FAST_SCENARIO(misfits_do_not_rotate),
      FAST_SCENARIO(every_codec_keeps_the_mean_and_comes_to_agree),
      FAST_SCENARIO(coded_rules_train_to_the_common_optimum),
      FAST_SCENARIO(weights_are_adopted_and_finished_exactly_under_any_codec),
      FAST_SCENARIO(coded_messages_are_as_short_as_they_are_said_to_be),
      FAST_SCENARIO(coded_messages_do_not_tear),
      FAST_SCENARIO(buffers_stay_exact_under_any_codec),
      FAST_SCENARIO(memory_may_lie_differently_on_each_worker_under_any_codec),
      FAST_SCENARIO(not_a_number_is_passed_on_by_every_codec),
      FAST_SCENARIO(codecs_that_do_not_fit_are_refused_everywhere),
      FAST_SCENARIO(every_remote_path_gives_the_same_bits),
      FAST_SCENARIO(no_remote_path_tears),
      FAST_SCENARIO(republished_weights_replace_those_under_way),
      FAST_SCENARIO(a_capped_worker_sends_no_faster),
  };
#undef FAST_SCENARIO
  return all;
}

}  // namespace fast::testing
