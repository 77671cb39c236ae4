// Outer rules, with few coded entries and on sites, and rules that remember, while spares take
// seats and workers join. In rounds that all workers make together, each follows the rule's
// equations with the mean of all. In the end they stand at the optimum of all.
#include "worker/rules/crossing_run.hpp"

#include <fast/topology/graphs.hpp>

#include <algorithm>
#include <functional>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "topology/hosts.hpp"

using namespace fast;
using testing::crossing_elements;
using testing::crossing_optimum;
using testing::crossing_rate;
using testing::CrossingEnd;
using testing::CrossingRound;
using testing::CrossingRun;
using testing::Held;

namespace {

using Seats = std::map<int, CrossingRound>;

constexpr double crossing_rounding = 1e-11;  ///< of sums of values up to 30

int crossing_below(Rng& rng, int count) {
  return static_cast<int>(rng.below(static_cast<std::uint64_t>(count)));
}

double crossing_option(const CrossingRun& run, const char* name, double otherwise) {
  const auto found = run.parameters.find(name);
  return found == run.parameters.end() ? otherwise : std::stod(found->second);
}

/// A death, a growth, or both.
void draw_events(CrossingRun& run, Rng& rng) {
  run.seed = rng();
  const int kind = crossing_below(rng, 3);
  if (kind != 1) run.dies_in = 15 + crossing_below(rng, 40);
  if (kind != 0) run.asks_in = 10 + crossing_below(rng, 30);
}

/// Of devices.
testing::Place drawn_place(Rng& rng) {
  return crossing_below(rng, 2) == 0 ? testing::Place::staged : testing::Place::mapped;
}

CrossingRun drawn_outer(Rng& rng) {
  CrossingRun run;
  run.workers = 3 + crossing_below(rng, 4);
  run.parameters = {{"period", std::to_string(2 + crossing_below(rng, 6))}};
  run.rule = crossing_below(rng, 3) == 0 ? "diloco" : "gasloc";
  const bool changes = crossing_below(rng, 2) == 0;
  if (changes) run.parameters["changes"] = "true";
  if (run.rule == "diloco") {
    run.parameters["momentum"] = "0.4";
  } else {
    run.parameters["rate"] = crossing_below(rng, 2) == 0 ? "1" : "0.8";
    run.parameters["acceleration"] = crossing_below(rng, 2) == 0 ? "0" : "0.3";
    if (changes) run.parameters["consensus_step"] = "0.6";
    if (changes && crossing_below(rng, 2) == 0) run.codec = "int8";
    if (crossing_below(rng, 3) > 0) run.topology = stencil::ring();
  }
  draw_events(run, rng);
  return run;
}

CrossingRun drawn_few(Rng& rng) {
  CrossingRun run;
  run.rule = "diloco";
  run.workers = 3 + crossing_below(rng, 3);
  run.rounds_after = 1500;
  const int period = 2 + crossing_below(rng, 5);
  run.parameters = {{"period", std::to_string(period)},
                    {"delay", std::to_string(crossing_below(rng, 1 + period / 2))},
                    {"rate", crossing_below(rng, 2) == 0 ? "1" : "0.6"},
                    {"momentum", crossing_below(rng, 2) == 0 ? "0.9" : "0.5"},
                    {"fraction", crossing_below(rng, 2) == 0 ? "0.3" : "0.13"}};
  const char* codecs[] = {"identity", "int2", "int4", "int8", "int8_stochastic", "bf16", "fp16"};
  run.codec = codecs[crossing_below(rng, 7)];
  draw_events(run, rng);
  return run;
}

/// With an odd number, each worker is a site. All workers of a site exchange, so that the weights
/// of all rounds are symmetric.
TopologyRule two_sites(std::int64_t every) {
  return {"sites", [every](int workers) {
            return schedule::sites(every, workers % 2 == 0 ? workers / 2 : 1, 8).make(workers);
          }};
}

CrossingRun drawn_sites(Rng& rng) {
  CrossingRun run;
  run.rule = "awc_gasloc";
  run.workers = 4 + 2 * crossing_below(rng, 2);
  run.topology = two_sites(3 + crossing_below(rng, 4));
  run.parameters = {{"rate", crossing_below(rng, 2) == 0 ? "1" : "0.8"},
                    {"consensus_step", crossing_below(rng, 2) == 0 ? "1" : "0.7"},
                    {"acceleration", crossing_below(rng, 2) == 0 ? "0" : "0.3"}};
  draw_events(run, rng);
  return run;
}

/// Of all seats, the sum of value(round of a seat).
double sum_over(const Seats& seats, const std::function<double(const CrossingRound&)>& value) {
  double sum = 0;
  for (const auto& [seat, one] : seats) sum += value(one);
  return sum;
}

void check_gasloc_step(const CrossingRun& run, const Seats& seats) {
  const double eta = crossing_option(run, "rate", 1);
  const double gamma = crossing_option(run, "acceleration", 0);
  for (std::size_t e = 0; e < crossing_elements; ++e) {
    const auto expected = [&](const CrossingRound& one) {
      const double phi = one.before.state[0][e], u = phi + eta * (one.stepped[e] - phi);
      const bool moves = gamma > 0 && one.before.exchanges > 0;
      return u + (moves ? gamma * (u - one.before.state[1][e]) : 0);
    };
    const auto found = [e](const CrossingRound& one) { return one.after.state[0][e]; };
    REQUIRE(std::abs(sum_over(seats, expected) - sum_over(seats, found)) < crossing_rounding);
    for (const auto& [seat, one] : seats) REQUIRE(one.after.x[e] == one.after.state[0][e]);
  }
}

void check_diloco_step(const CrossingRun& run, const Seats& seats) {
  const double eta = crossing_option(run, "rate", 0.7);
  const double beta = crossing_option(run, "momentum", 0.9);
  const bool changes = run.parameters.contains("changes");
  const auto workers = static_cast<double>(seats.size());
  for (std::size_t e = 0; e < crossing_elements; ++e) {
    const double mean = sum_over(seats, [&](const CrossingRound& one) {
      return (one.stepped[e] - (changes ? one.before.state[0][e] : 0)) / workers;
    });
    for (const auto& [seat, one] : seats) {
      const double phi = one.before.state[0][e], change = changes ? -mean : phi - mean;
      const double m = beta * one.before.state[1][e] + change;
      REQUIRE(std::abs(one.after.state[1][e] - m) < crossing_rounding);
      REQUIRE(std::abs(one.after.state[0][e] - (phi - eta * (change + beta * m))) <
              crossing_rounding);
      REQUIRE(one.after.x[e] == one.after.state[0][e]);
    }
  }
}

/// What a worker had to send: e ← β e + θ - φ. With a delay it has added that before.
double untold(const CrossingRun& run, const CrossingRound& one, std::size_t e) {
  const double kept = one.before.state[1][e];
  if (crossing_option(run, "delay", 0) > 0) return kept;
  return crossing_option(run, "momentum", 0) * kept + one.stepped[e] - one.before.state[0][e];
}

/// What it has sent is gone from its memory, and no worker has got more or less of it.
void check_few_step(const CrossingRun& run, const Seats& seats) {
  const auto entries = static_cast<std::size_t>(crossing_option(run, "fraction", 0) *
                                                static_cast<double>(crossing_elements));
  testing::Vector mean(crossing_elements);
  for (const auto& [seat, one] : seats) {
    testing::Vector sizes;
    for (std::size_t e = 0; e < crossing_elements; ++e)
      sizes.push_back(std::abs(untold(run, one, e)));
    testing::Vector sorted = sizes;
    std::sort(sorted.rbegin(), sorted.rend());
    std::size_t sent_entries = 0;
    for (std::size_t e = 0; e < crossing_elements; ++e) {
      const double sent = untold(run, one, e) - one.after.state[1][e];
      mean[e] += sent / static_cast<double>(seats.size());
      if (std::abs(sent) < crossing_rounding) continue;
      ++sent_entries;
      REQUIRE(sizes[e] > sorted[entries - 1] - crossing_rounding);
      if (run.codec == "identity") REQUIRE(std::abs(one.after.state[1][e]) < crossing_rounding);
    }
    REQUIRE(sent_entries <= entries);
  }
  const double eta = crossing_option(run, "rate", 0);
  for (const auto& [seat, one] : seats) {
    for (std::size_t e = 0; e < crossing_elements; ++e)
      REQUIRE(std::abs(one.after.state[0][e] - one.before.state[0][e] - eta * mean[e]) <
              crossing_rounding);
  }
}

bool is_between_sites(const CrossingRun& run, int workers, std::int64_t combination) {
  return host_edges_of(run.topology.make(workers).at(combination)) == HostEdges::Kind::between;
}

void check_sites_round(const CrossingRun& run, const Seats& seats) {
  const double eta = crossing_option(run, "rate", 1);
  const double gamma = crossing_option(run, "acceleration", 0);
  const Held &before = seats.begin()->second.before, &after = seats.begin()->second.after;
  const bool between = is_between_sites(run, before.size, before.combinations);
  const bool next = is_between_sites(run, after.size, after.combinations);
  for (std::size_t e = 0; e < crossing_elements; ++e) {
    double phi = 0, x = 0;
    for (const auto& [seat, one] : seats) {
      const double u = one.before.x[e];
      const bool moves = gamma > 0 && one.before.exchanges > 0;
      phi += !between ? one.before.state[0][e]
                      : u + (moves ? gamma * (u - one.before.state[1][e]) : 0);
      x += one.stepped[e] - u;
      if (!between) x += u;
    }
    if (between) x += phi;
    if (next) x = phi + eta * (x - phi);
    const double found_phi =
        sum_over(seats, [e](const auto& one) { return one.after.state[0][e]; });
    const double found_x = sum_over(seats, [e](const auto& one) { return one.after.x[e]; });
    REQUIRE(std::abs(found_phi - phi) < crossing_rounding);
    REQUIRE(std::abs(found_x - x) < crossing_rounding);
  }
}

/// check(seats) of all combinations that all workers made together. Most are such.
void check_rounds(const CrossingRun& run, const CrossingEnd& end,
                  const std::function<void(const Seats&)>& check) {
  std::int64_t combinations = 0, common = 0, common_in_the_end = 0;
  for (const auto& [round, seats] : end.log) {
    const CrossingRound& first = seats.begin()->second;
    if (first.after.combinations == first.before.combinations) continue;
    ++combinations;
    if (!testing::is_common(seats)) continue;
    ++common;
    if (first.before.size == run.all()) ++common_in_the_end;
    INFO("round " << round);
    check(seats);
  }
  CHECK(common * 10 > combinations * 7);
  CHECK(common_in_the_end > 20);
}

double mean_end(const CrossingRun& run, const CrossingEnd& end, std::size_t e) {
  double mean = 0;
  for (const auto& [seat, x] : end.ends) mean += x[e] / run.all();
  return mean;
}

}  // namespace

TEST_CASE("crossings: outer steps, spares and workers that join") {
  const std::uint64_t seed = test_seed(61);
  Rng rng(seed);
  for (int k = 0; k < 14; ++k) {
    CrossingRun run = drawn_outer(rng);
    if (k >= 8) run.place = drawn_place(rng);
    INFO("FAST_TEST_SEED=" << seed << ", case " << k << ": " << run.text());
    const CrossingEnd end = testing::made(run);
    REQUIRE(end.ends.size() == static_cast<std::size_t>(run.all()));
    check_rounds(run, end, [&](const Seats& seats) {
      run.rule == "gasloc" ? check_gasloc_step(run, seats) : check_diloco_step(run, seats);
    });
    for (std::size_t e = 0; e < crossing_elements; ++e)
      REQUIRE(std::abs(mean_end(run, end, e) - crossing_optimum(run, e)) < 1e-6);
  }
}

// Let d be the distance of the mean φ from the optimum, c = 1 - (1-lr)^steps and E the largest mean
// memory in the second half. An outer step makes d⁺ = (1-ηc) d + η(β e - e⁺), so that d + ηe
// shrinks by 1-ηc and gains at most ηE |β-1+ηc|.
TEST_CASE("crossings: few coded entries, spares and workers that join") {
  const std::uint64_t seed = test_seed(62);
  Rng rng(seed);
  for (int k = 0; k < 10; ++k) {
    const CrossingRun run = drawn_few(rng);
    INFO("FAST_TEST_SEED=" << seed << ", case " << k << ": " << run.text());
    const CrossingEnd end = testing::made(run);
    REQUIRE(end.ends.size() == static_cast<std::size_t>(run.all()));
    std::vector<testing::Vector> phi, memory;  // means, with all workers
    check_rounds(run, end, [&](const Seats& seats) {
      check_few_step(run, seats);
      if (seats.begin()->second.before.size < run.all()) return;
      for (const std::size_t s : {std::size_t{0}, std::size_t{1}}) {
        testing::Vector& mean = (s == 0 ? phi : memory).emplace_back();
        for (std::size_t e = 0; e < crossing_elements; ++e)
          mean.push_back(sum_over(seats, [=](const auto& one) { return one.after.state[s][e]; }) /
                         run.all());
      }
    });
    const double eta = crossing_option(run, "rate", 0), beta = crossing_option(run, "momentum", 0);
    const double steps = crossing_option(run, "period", 0) - crossing_option(run, "delay", 0);
    const double c = 1 - std::pow(1 - crossing_rate, steps);
    const std::size_t half = phi.size() / 2;
    for (std::size_t e = 0; e < crossing_elements; ++e) {
      const auto distance = [&](std::size_t step) {
        return std::abs(phi[step][e] - crossing_optimum(run, e));
      };
      double largest = 0;
      for (std::size_t step = half; step < memory.size(); ++step)
        largest = std::max(largest, std::abs(memory[step][e]));
      const double left = std::pow(1 - eta * c, phi.size() - 1 - half);
      const double bound = left * (distance(half) + eta * largest) +
                           largest * (std::abs(beta - 1 + eta * c) / c + eta);
      REQUIRE(distance(phi.size() - 1) < bound + 1e-9);
    }
  }
}

TEST_CASE("crossings: awc_gasloc on sites, spares and workers that join") {
  const std::uint64_t seed = test_seed(63);
  Rng rng(seed);
  for (int k = 0; k < 6; ++k) {
    const CrossingRun run = drawn_sites(rng);
    INFO("FAST_TEST_SEED=" << seed << ", case " << k << ": " << run.text());
    const CrossingEnd end = testing::made(run);
    REQUIRE(end.ends.size() == static_cast<std::size_t>(run.all()));
    check_rounds(run, end, [&](const Seats& seats) { check_sites_round(run, seats); });
    for (std::size_t e = 0; e < crossing_elements; ++e)
      REQUIRE(std::abs(mean_end(run, end, e) - crossing_optimum(run, e)) < 1e-6);
  }
}

// Coded weights agree up to the code. The trackers sum to the steps in every epoch, so that the
// mean goes to the optimum exactly.
TEST_CASE("crossings: coded gradient tracking, spares and workers that join") {
  const std::uint64_t seed = test_seed(64);
  Rng rng(seed);
  for (int k = 0; k < 14; ++k) {
    CrossingRun run{.rule = "gradient_tracking"};
    const char* codecs[] = {"int8", "bf16", "int8_stochastic"};
    run.codec = codecs[crossing_below(rng, 3)];
    run.workers = 3 + crossing_below(rng, 4);
    if (crossing_below(rng, 3) > 0) run.topology = stencil::ring();
    draw_events(run, rng);
    if (k >= 6) run.place = drawn_place(rng);
    if (k >= 4) run.spoiled_in = 5 + crossing_below(rng, 60);
    INFO("FAST_TEST_SEED=" << seed << ", case " << k << ": " << run.text());
    const CrossingEnd end = testing::made(run);
    REQUIRE(end.ends.size() == static_cast<std::size_t>(run.all()));
    for (std::size_t e = 0; e < crossing_elements; ++e)
      REQUIRE(std::abs(mean_end(run, end, e) - crossing_optimum(run, e)) < 1e-6);
  }
}

// While a seat is vacant, a tree is in parts. Each worker comes to the optimum of all.
TEST_CASE("crossings: a chain and a tree that relay, spares and workers that join") {
  const std::uint64_t seed = test_seed(65);
  Rng rng(seed);
  for (int k = 0; k < 6; ++k) {
    CrossingRun run{.rule = "relay_sum", .topology = stencil::grid1d()};
    if (k % 2 == 1) {
      run.parameters = {{"degree", "3"}};
      run.topology = graph::tree();
    }
    run.workers = 3 + crossing_below(rng, 4);
    run.rounds_after = 1500;
    draw_events(run, rng);
    INFO("FAST_TEST_SEED=" << seed << ", case " << k << ": " << run.text());
    const CrossingEnd end = testing::made(run);
    REQUIRE(end.ends.size() == static_cast<std::size_t>(run.all()));
    for (const auto& [seat, x] : end.ends) {
      for (std::size_t e = 0; e < crossing_elements; ++e)
        REQUIRE(std::abs(x[e] - crossing_optimum(run, e)) < 1e-6);
    }
  }
}
