#include "measure/measured_cluster.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "core/numbers.hpp"
#include "topology/hosts.hpp"

namespace tools {

using namespace fast;

namespace {

constexpr std::size_t most_steps = 200;

double seconds_of(const std::function<void()>& step) {
  const auto began = Clock::now();
  step();
  return std::max(Seconds(Clock::now() - began).count(), 1e-9);
}

}  // namespace

StepTimes time_steps(const std::function<void()>& step, Seconds budget) {
  const double first_s = seconds_of(step);
  if (first_s >= budget.count()) return {first_s, 0};
  std::vector<double> times, deviations;
  for (double sum = 0; sum < budget.count() && times.size() < most_steps; sum += times.back()) {
    times.push_back(seconds_of(step));
  }
  const double usual_s = median(times);
  for (const double each : times) deviations.push_back(std::abs(std::log(each / usual_s)));
  const double mean_s =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  return {mean_s, sigma_of_median_deviation * median(deviations)};
}
using simulation::Cluster;

namespace {

constexpr Seconds exchange_patience{60};
constexpr double most_jitter = 3;

double mean(const std::vector<std::string>& numbers) {
  double sum = 0;
  for (const std::string& each : numbers) sum += std::strtod(each.c_str(), nullptr);
  return sum / static_cast<double>(numbers.size());
}

void add_steps(const fast::Group& group, const ClusterMeasurement& asked, Cluster& cluster) {
  StepTimes times;
  agree(group, Deadline(asked.longest_steps), "measuring steps", [&] { times = asked.steps(); });
  const auto all = [&](double value) {
    return mean(
        group.all_gather(fmt::format("{}", value), Deadline(exchange_patience), "step times"));
  };
  cluster.step_s = all(times.mean_s);
  cluster.step_jitter = std::min(all(times.jitter), most_jitter);
}

}  // namespace

MeasuredCluster measure_cluster(const mpi::Communicator& ranks, const fast::Group& group,
                                const ClusterMeasurement& asked) {
  const HostSizes sizes(asked.hosts);
  MeasuredCluster measured;
  Cluster& cluster = measured.cluster;
  cluster.hosts = sizes.hosts;
  cluster.workers_per_host = sizes.most;
  cluster.payload_bytes = asked.payload_bytes;
  add_steps(group, asked, cluster);
  measured.links = measure_links(ranks, asked.hosts, asked.links);
  cluster.link_bandwidth = measured.links.bandwidth;
  cluster.link_latency_s = measured.links.latency_s;
  cluster.link_jitter = std::min(measured.links.jitter, most_jitter);
  if (measured.links.memory_bandwidth > 0)
    cluster.memory_bandwidth = measured.links.memory_bandwidth;
  return measured;
}

std::string rate_text(double bytes_per_s) { return fmt::format("{:.4g} MB/s", bytes_per_s / 1e6); }

std::string text_of(const MeasuredCluster& measured) {
  const Cluster& cluster = measured.cluster;
  const MeasuredLinks& links = measured.links;
  std::string text =
      fmt::format("measured in {:.1f} s: {} of {} workers; ", links.seconds,
                  cluster.hosts == 1 ? "1 host" : fmt::format("{} hosts", cluster.hosts),
                  cluster.workers_per_host);
  if (cluster.hosts > 1) {
    text += fmt::format("between hosts {:.3g} ms, {} (one worker alone {}), jitter {:.2g}; ",
                        1e3 * links.latency_s, rate_text(links.bandwidth),
                        rate_text(links.lone_bandwidth), links.jitter);
  }
  if (links.memory_bandwidth > 0)
    text += fmt::format("within a host {}; ", rate_text(links.memory_bandwidth));
  text += fmt::format("steps of {:.4g} ms, {:.4g} MB\n", 1e3 * cluster.step_s,
                      cluster.payload_bytes / 1e6);
  const HostPairFigures* slowest = nullptr;
  for (const HostPairFigures& pair : links.pairs) {
    if (pair.bandwidth <= 0) continue;
    if (slowest == nullptr || pair.bandwidth < slowest->bandwidth) slowest = &pair;
  }
  if (slowest != nullptr && slowest->bandwidth < links.bandwidth / 2) {
    text += fmt::format("slow: {} and {} have {} between them\n", slowest->first, slowest->second,
                        rate_text(slowest->bandwidth));
  }
  return text;
}

}  // namespace tools
