// One cell of the scaling study: workers whose steps are paced exchange by one method. The row has
// the time of a round, where it went, what crossed the links, and the share of fresh reads.
// bench/scaling/scaling.sh runs all cells.
#include <fmt/core.h>

#include <cmath>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "ranks.hpp"
#include "report.hpp"
#include "scaling/contender.hpp"
#include "scaling/pace.hpp"

using namespace fast;

namespace {

constexpr Seconds patience{300};

struct Cell {
  bench::MethodOptions method;
  bench::PaceOptions pace;
  double megabytes = 2;
  int rounds = 40, warm_up = 3;
  std::string staleness = "0", interface = "eth0";
};

void describe(CLI::App& app, Cell& cell) {
  app.add_option("--method", cell.method.method,
                 "none, neighbors, allreduce, mpi_allreduce, server or server_async")
      ->capture_default_str();
  app.add_option("--topology", cell.method.topology, "of neighbors")->capture_default_str();
  app.add_option("--rule", cell.method.rule, "of neighbors")->capture_default_str();
  app.add_option("--rule-option", cell.method.rule_options, "KEY=VALUE, of the rule");
  app.add_option("--codec", cell.method.codec, "of neighbors")->capture_default_str();
  app.add_option("--staleness", cell.staleness, "of neighbors: a number or inf")
      ->capture_default_str();
  app.add_option("--mb", cell.megabytes, "size of the weights, in 10^6 bytes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", cell.rounds, "measured")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--step-ms", cell.pace.step_ms, "mean of a step's time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--jitter", cell.pace.jitter, "of the steps, lognormal: deviation / mean")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--slow", cell.pace.slow, "how many times as slow the last worker is")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--interface", cell.interface, "whose bytes are counted")->capture_default_str();
}

/// Bytes that this host has sent by the interface; 0 without one of that name.
double sent_bytes(const std::string& interface) {
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(' ');
    if (colon == std::string::npos || line.substr(begin, colon - begin) != interface) continue;
    std::istringstream fields(line.substr(colon + 1));
    double value = 0;
    for (int field = 0; field < 9; ++field) fields >> value;
    return value;
  }
  return 0;
}

/// Of one worker.
struct Measured {
  double elapsed_s = 0;
  bench::Anatomy anatomy;
  double sent_bytes = 0;  ///< of the host, on its lowest rank alone
  double mean = 0;        ///< of its weights, at the end
};

bench::Anatomy operator-(bench::Anatomy a, const bench::Anatomy& b) {
  a.step_s -= b.step_s;
  a.publish_s -= b.publish_s;
  a.wait_s -= b.wait_s;
  a.mix_s -= b.mix_s;
  a.reads -= b.reads;
  a.fresh_reads -= b.fresh_reads;
  return a;
}

/// Steps add to all weights a number of the worker's own; these sum to 0 over the workers. So the
/// mean of all weights stays 0 with every method that keeps it.
Measured run(const mpi::Communicator& world, const Group& group, const Cell& cell) {
  std::vector<float> weights(static_cast<std::size_t>(cell.megabytes * 1e6 / sizeof(float)));
  const double middle = (world.size() - 1) / 2.0;
  const auto change = static_cast<float>(1e-3 * (world.rank() - middle));
  const auto method = bench::make_contender(world, group, cell.method, weights);
  bench::Pace pace(cell.pace, world.rank(), world.size());
  const auto step = [&] {
    const Deadline begun(patience);
    for (float& value : weights) value += change;
    const Seconds left = pace.next() - Seconds(begun.elapsed_s());
    if (left > Seconds(0)) bench::sleep_ms(left.count() * 1e3);
  };
  for (int round = 0; round < cell.warm_up; ++round) method->round(step);
  const bool first_on_host = group.hosts()[static_cast<std::size_t>(world.rank())] == world.rank();
  group.barrier(Deadline(patience), "measuring");
  const double bytes_before = sent_bytes(cell.interface);
  const bench::Anatomy before = method->anatomy();
  const auto start = Clock::now();
  for (int round = 0; round < cell.rounds; ++round) method->round(step);
  Measured found;
  found.elapsed_s = Seconds(Clock::now() - start).count();
  found.anatomy = method->anatomy() - before;
  group.barrier(Deadline(patience), "measured");
  found.sent_bytes = first_on_host ? sent_bytes(cell.interface) - bytes_before : 0;
  method->finish();
  group.barrier(Deadline(patience), "finished");
  found.mean =
      std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  return found;
}

/// Means over workers, in ms a round; the slow worker apart.
bench::Row row_of(const mpi::Communicator& world, const Group& group, const Cell& cell,
                  const std::vector<std::vector<double>>& all) {
  const bool is_uneven = cell.pace.slow != 1;
  const std::size_t counted = all.size() - (is_uneven && all.size() > 1 ? 1 : 0);
  const auto mean = [&](std::size_t column) {
    double sum = 0;
    for (std::size_t worker = 0; worker < counted; ++worker) sum += all[worker][column];
    return sum / static_cast<double>(counted) / cell.rounds * 1e3;
  };
  std::vector<double> rounds_ms;
  for (std::size_t worker = 0; worker < counted; ++worker)
    rounds_ms.push_back(all[worker][0] / cell.rounds * 1e3);
  const auto timing = bench::timing_of(rounds_ms);
  double bytes = 0, mean_weight = 0, reads = 0, fresh = 0;
  for (const auto& one : all) {
    bytes += one[5];
    reads += one[7];
    fresh += one[8];
    mean_weight += one[6] / static_cast<double>(all.size());
  }
  const std::vector<int> hosts = group.hosts();
  const std::set<int> distinct(hosts.begin(), hosts.end());
  const double sent_mb = bytes / 1e6 / cell.rounds / static_cast<double>(distinct.size());
  const double measured_ms = mean(1) + mean(2) + mean(3) + mean(4);
  const bool neighbors = cell.method.method == "neighbors";
  bench::Row row{{"method", cell.method.method},
                 {"topology", neighbors ? cell.method.topology : "-"},
                 {"rule", neighbors ? cell.method.rule : "-"},
                 {"staleness", neighbors ? cell.staleness : "-"},
                 {"codec", neighbors ? cell.method.codec : "-"},
                 {"workers", world.size()},
                 {"hosts", distinct.size()},
                 {"mb", cell.megabytes},
                 {"step_ms", cell.pace.step_ms},
                 {"jitter", cell.pace.jitter},
                 {"slow", cell.pace.slow},
                 {"round_ms", mean(0)},
                 {"round_median_ms", timing.median_ms},
                 {"compute_ms", mean(1)},
                 {"publish_ms", mean(2)},
                 {"wait_ms", mean(3)},
                 {"mix_ms", mean(4)},
                 {"rest_ms", mean(0) - measured_ms},
                 {"fresh", reads > 0 ? fresh / reads : 1},
                 {"host_sent_mb_round", distinct.size() > 1 ? sent_mb : 0},
                 {"mean_moved", std::abs(mean_weight)}};
  if (is_uneven) row["slow_round_ms"] = all.back()[0] / cell.rounds * 1e3;
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    bench::Report report("bench_scaling");
    Cell cell;
    CLI::App app{"A cell of the scaling study; bench/scaling/scaling.sh runs all", "bench_scaling"};
    describe(app, cell);
    report.add_options(app);
    const Group group(world);
    if (!bench::parse(group, app, argc, argv)) return 0;
    cell.method.staleness = bench::staleness_of(cell.staleness);
    const Measured own = run(world, group, cell);
    const auto all = bench::gather(group, {own.elapsed_s, own.anatomy.step_s, own.anatomy.publish_s,
                                           own.anatomy.wait_s, own.anatomy.mix_s, own.sent_bytes,
                                           own.mean, own.anatomy.reads, own.anatomy.fresh_reads});
    if (world.rank() != 0) return 0;
    report.add(row_of(world, group, cell, all));
    return report.finish();
  });
}
