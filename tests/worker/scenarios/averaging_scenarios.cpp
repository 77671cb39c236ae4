#include "worker/scenarios/averaging_scenarios.hpp"

#include <chrono>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <numeric>
#include <thread>

#include "worker/constant.hpp"
#include "worker/scenarios/whole_blocks.hpp"

namespace fast::testing {
namespace {

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
  const auto train = [&](std::vector<double>& x, algorithm::Rule rule) {
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
  std::vector<int> everybody(static_cast<std::size_t>(group.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  const auto enough = [&] {  // who has finished comes no nearer any more
    return !c.worker.departed(everybody).finished.empty() || patience.expired() ||
           c.worker.consensus_distance() < 1e-3 * group.size();
  };
  do {  // at least once, though the others may have come to this worker's value by now
    for (int t = 0; t < 20; ++t) {
      c.worker.step([] { std::this_thread::sleep_for(std::chrono::microseconds(100)); });
      const double value = c.x[0];
      expect(value >= 0 && value <= group.size() - 1, "values stay within the workers' range");
      expect(has_whole_blocks(std::span<const double>(c.x)), "no torn value is combined");
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

/// A model of several types, in parts that begin in the middle of tensors.
void reduced_models_are_those_of_the_replicas(const Group& group) {
  const int n = group.size(), r = group.rank();
  const auto value = [](int worker, std::size_t e) {
    return 0.25 * static_cast<double>(e % 7) + worker * worker;
  };
  std::vector<float> a(1501);
  std::vector<double> b(777);
  std::vector<BFloat16> c(333);
  for (std::size_t e = 0; e < a.size(); ++e) a[e] = static_cast<float>(value(r, e));
  for (std::size_t e = 0; e < b.size(); ++e) b[e] = value(r, e);
  for (BFloat16& x : c) x = to_bfloat16(static_cast<float>(r));
  WorkerOptions options = quick();
  options.algorithm = algorithm::none();
  Worker worker(group, stencil::ring(),
                {view_of("a", std::span(a)), view_of("b", std::span(b), Role::buffer),
                 view_of("c", std::span(c))},
                options);
  worker.await_finish();
  double mean = 0, mean_square = 0;
  for (int w = 0; w < n; ++w) mean += double(w) * w / n;
  for (int w = 0; w < n; ++w) mean_square += (double(w) * w - mean) * (double(w) * w - mean) / n;
  double of_c = 0;
  for (int w = 0; w < n; ++w) of_c += (w - (n - 1) / 2.0) * (w - (n - 1) / 2.0) / n;
  const double spread = 1501 * mean_square + 333 * of_c;
  const std::size_t size = worker.layout().size_bytes();
  const AlignedBuffer packed(size);
  expect_near(worker.reduce_models({}), std::sqrt(spread), "distance alone", 1e-12);
  expect_near(worker.reduce_models({packed.data(), size}), std::sqrt(spread), "distance", 1e-12);
  worker.layout().scatter(packed.data());
  for (std::size_t e = 0; e < a.size(); ++e)
    expect_near(a[e], 0.25 * static_cast<double>(e % 7) + mean, "reduced f32", 1e-6);
  for (std::size_t e = 0; e < b.size(); ++e)
    expect_near(b[e], 0.25 * static_cast<double>(e % 7) + mean, "reduced f64", 1e-12);
  const auto of_short = to_float(to_bfloat16(static_cast<float>((n - 1) / 2.0)));
  expect(to_float(c.back()) == of_short, "reduced bf16");
  double bytes_read = 0;
  for (const std::string& bytes : group.all_gather(
           fmt::format("{}", worker.stats().model_bytes_read), Deadline(Seconds(30)), "adding up"))
    bytes_read += std::stod(bytes);
  expect(bytes_read <= 2.0 * n * static_cast<double>(size),
         fmt::format("{} bytes are read of replicas of {}", bytes_read, size));
  const std::vector<std::string> all = group.all_gather(
      {reinterpret_cast<const char*>(packed.data()), size}, Deadline(Seconds(30)), "comparing");
  expect(all.front() == all.back(), "the mean is the same everywhere");
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

namespace {

/// Gossip on the two-way ring, where worker j has the parabola (x - j²)²/2 and starts at 3j.
struct RingOfParabolas {
  static constexpr double rate = 0.125;
  int workers;
  bool steps_first = false;  ///< as atc does
  int times = 1;             ///< averages in a step
  std::vector<double> x = starts(workers);

  static std::vector<double> starts(int workers) {
    std::vector<double> all;
    for (int j = 0; j < workers; ++j) all.push_back(3.0 * j);
    return all;
  }
  static double moved(double x, std::size_t j) { return rate * (static_cast<double>(j * j) - x); }
  std::vector<double> averaged(const std::vector<double>& of) const {
    const std::size_t n = of.size();
    if (n == 1) return of;
    std::vector<double> all(n);
    for (std::size_t j = 0; j < n; ++j) {
      all[j] = n == 2 ? (of[0] + of[1]) / 2 : (of[(j + n - 1) % n] + of[j] + of[(j + 1) % n]) / 3;
    }
    return all;
  }
  /// A step; returns what is published with it.
  std::vector<double> advance() {
    std::vector<double> next = steps_first ? x : averaged(x);
    for (std::size_t j = 0; j < x.size(); ++j) next[j] += moved(x[j], j);
    const std::vector<double> published = next;
    for (int k = steps_first ? 0 : 1; k < times; ++k) next = averaged(next);
    x = next;
    return steps_first ? published : x;
  }
  /// Of the mean of all parabolas, at x.
  double suboptimality(double at) const {
    double optimum = 0;
    for (int j = 0; j < workers; ++j) optimum += static_cast<double>(j) * j / workers;
    return (at - optimum) * (at - optimum) / 2;
  }
  double suboptimality_after(int steps) const {
    return suboptimality(3 * (workers - 1) / 2.0) * std::pow(1 - rate, 2 * steps);
  }
};

void watch_the_mean(const Group& group, const char* rule, bool together) {
  const int n = group.size(), me = group.rank(), rounds = 30, watcher = n - 1;
  RingOfParabolas ring{.workers = n, .steps_first = rule == std::string_view("atc")};
  std::vector<std::vector<double>> published{ring.x};
  for (int t = 0; t <= rounds + n; ++t) published.push_back(ring.advance());
  const auto check = [&](std::int64_t round, double mean, std::span<const MeanPart> parts) {
    expect(std::ssize(parts) == n, "all workers count");
    double expected = 0;
    for (int j = 0; j < n; ++j) {
      const auto [worker, steps] = parts[static_cast<std::size_t>(j)];
      expect(worker == j && std::abs(steps - round) <= n / 2 && (j != me || steps == round),
             fmt::format("{}: part {} of worker {} has {} steps in round {}", rule, j, worker,
                         steps, round));
      expected += published[static_cast<std::size_t>(steps)][static_cast<std::size_t>(j)] / n;
    }
    expect_near(mean, expected, fmt::format("{}: the mean of these weights", rule), 1e-13);
  };
  std::vector<std::int64_t> seen;
  WorkerOptions options = quick();
  options.algorithm = algorithm::by_name(rule);
  options.on_mean = {2, watcher,
                     [&](std::int64_t round, std::span<const std::byte> mean, auto parts) {
                       check(round, reinterpret_cast<const double*>(mean.data())[4], parts);
                       seen.push_back(round);
                     }};
  Constant c(group, stencil::ring(), 3.0 * me, options);
  for (int t = 1; t <= rounds; ++t) {
    c.worker.step([&] {
      for (double& value : c.x) value += ring.moved(value, static_cast<std::size_t>(me));
    });
    if (!together) continue;
    group.all_gather("", Deadline(Seconds(30)), "all have made the round");
    std::vector<double> mean(c.x.size());
    const auto parts = c.worker.mean_model({view_of("x", std::span(mean))});
    check(t, mean[0], parts);
    for (const MeanPart& part : parts) expect(part.steps == t, "all have made as many steps");
    expect_near(ring.suboptimality(mean[0]), ring.suboptimality_after(t), "suboptimality", 1e-12);
    group.all_gather("", Deadline(Seconds(30)), "all have read it");
  }
  expect(std::ssize(seen) == (me == watcher ? rounds / 2 : 0), "one worker watches, each 2 rounds");
  for (std::size_t k = 0; k < seen.size(); ++k)
    expect(seen[k] == static_cast<std::int64_t>(2 * k + 2), "after rounds 2, 4, 6, ...");
  // Final weights of atc, unlike what it publishes, are averaged.
  group.all_gather("", Deadline(Seconds(30)), "nobody watches any more");
  c.worker.await_finish();
  std::vector<double> mean(c.x.size());
  for (const MeanPart& part : c.worker.mean_model({view_of("x", std::span(mean))}))
    expect(part.steps == rounds, "the end has all steps");
  expect_near(ring.suboptimality(mean[0]), ring.suboptimality_after(rounds), "at the end", 1e-12);
}

void refuse_averages(const Group& group, const WorkerOptions& options, const std::string& why) {
  std::string text;
  try {
    Constant(group, stencil::ring(), 0, options);
  } catch (const Error& error) {
    expect(error.kind() == ErrorKind::argument && error.everywhere(), "refused on every worker");
    text = error.what();
  }
  expect(text.find(why) != std::string::npos, text);
}

}  // namespace

void the_mean_is_watched_while_all_go_on(const Group& group) {
  for (const char* rule : {"awc", "atc"}) {
    for (const bool together : {false, true}) watch_the_mean(group, rule, together);
  }
  WorkerOptions never = quick();
  never.on_mean = {0, 0, [](std::int64_t, std::span<const std::byte>, auto) {}};
  refuse_averages(group, never, "on_mean every 0 rounds; a number of 1 or more");
}

void several_averages_in_a_step(const Group& group) {
  const int n = group.size(), me = group.rank(), rounds = 12;
  WorkerOptions options = quick();
  for (const char* rule : {"awc", "atc"}) {
    for (const char* codec : {"identity", "bf16", "int8"}) {
      for (const int times : {1, 2, 5}) {
        RingOfParabolas ring{
            .workers = n, .steps_first = rule == std::string_view("atc"), .times = times};
        options.algorithm = algorithm::by_name(rule);
        options.codec = codec::by_name(codec);
        options.mix_times = times;
        Constant c(group, stencil::ring(), 3.0 * me, options);
        for (int t = 0; t < rounds; ++t) {
          c.worker.step([&] {
            for (double& value : c.x) value += ring.moved(value, static_cast<std::size_t>(me));
          });
          ring.advance();
        }
        const bool exact = options.codec.kind == codec::Kind::identity;
        expect_near(c.x[4], ring.x[static_cast<std::size_t>(me)],
                    fmt::format("{} with {}, {} averages a step", rule, codec, times),
                    exact ? 1e-13 : 0.05);
        expect(c.worker.round() == rounds, "rounds count steps");
        expect(c.worker.stats().messages_sent == rounds * times * std::min(n - 1, 2), "messages");
      }
    }
  }
  options = quick();
  options.algorithm = algorithm::atc();
  options.mix_times = 2;
  options.mix_every = 3;
  {
    Constant c(group, stencil::ring(true), me, options);
    c.idle(6);
    expect_near(c.x[0], power_of_ring(n, 4)[static_cast<std::size_t>(me)], "twice each 3rd step");
  }
  options.mix_every = 1;
  if (n == 4) {  // a schedule moves on: its period averages exactly
    Constant c(group, schedule::one_peer_exponential(), me, options);
    c.idle(1);
    expect_near(c.x[0], 1.5, "the exact average in each step");
  }
  for (const char* rule : {"choco", "gossip_pga", "d2", "allreduce"}) {
    options.algorithm = algorithm::by_name(rule);
    refuse_averages(group, options,
                    "it makes one average a step, as more are for rules that keep "
                    "nothing between them: awc, atc, local, pairwise");
  }
  options.algorithm = algorithm::awc();
  options.staleness = 2;
  refuse_averages(group, options, "mix_times 2 with staleness 2; several averages a step need");
}

}  // namespace fast::testing
