#include "measure/measure_command.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/nn/backend.hpp>
#include <fstream>
#include <map>

#include "cli/program.hpp"
#include "measure/step_times.hpp"
#include "nn/shape.hpp"

namespace tools {

using namespace fast;
using simulation::Cluster;

namespace {

constexpr Seconds patience{60};
constexpr Seconds longest_steps{3600};  ///< of a large model
constexpr Seconds step_budget{2};
constexpr int classes = 10;

/// Steps on random samples.
std::function<void()> step_of(const std::string& model, int batch_size) {
  const nn::ModelSpec spec = nn::model_by_name(model, classes);
  const auto count = static_cast<std::size_t>(batch_size);
  std::vector<float> inputs(count * static_cast<std::size_t>(nn::elements_of(spec.input)));
  Rng rng(1);
  for (float& value : inputs) value = static_cast<float>(rng.uniform());
  std::vector<std::int32_t> labels(count);
  for (std::size_t k = 0; k < count; ++k) labels[k] = static_cast<std::int32_t>(k % classes);
  std::shared_ptr<Backend> backend = nn::make_backend<float>(spec, 1);
  return [=, shape = spec.input] { backend->train(Batch{inputs, labels, shape}); };
}

/// Ranks of each host.
std::map<int, int> host_sizes(const std::vector<int>& hosts) {
  std::map<int, int> sizes;
  for (const int host : hosts) ++sizes[host];
  return sizes;
}

double mean(const std::vector<std::string>& numbers) {
  double sum = 0;
  for (const std::string& each : numbers) sum += std::strtod(each.c_str(), nullptr);
  return sum / static_cast<double>(numbers.size());
}

std::string rate_text(double bytes_per_s) { return fmt::format("{:.4g} MB/s", bytes_per_s / 1e6); }

}  // namespace

MeasureCommand::MeasureCommand(CLI::App& command) {
  command.add_flag("--measure", asked_,
                   "Measure the cluster: start one rank for each worker, under fastrun or mpiexec");
  offer(command.add_option("--write-cluster", write_cluster_,
                           "Write what was measured to a file for --cluster"),
        {"<file>"});
  command.add_option("--step-ms", step_ms_, "Milliseconds of a step; without it, steps of --model")
      ->check(CLI::Range(1e-6, 1e9));
  command.add_option("--model", model_, "A model of fast-train by name (lenet)");
  command.add_option("--batch-size", batch_size_, "Samples of a measured step (64)")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--parameters", parameters_, "Parameters; without it, those of --model")
      ->check(CLI::Range(1.0, 2.5e13));
  command.add_option("--measure-s", budget_s_, "Seconds for the links (10)")
      ->check(CLI::Range(0.1, 600.0));
}

void MeasureCommand::check_unused() const {
  const bool unused = write_cluster_.empty() && !step_ms_ && !parameters_;
  require(unused, ErrorKind::argument,
          "plan: --write-cluster, --step-ms and --parameters belong to --measure; add --measure, "
          "or state step_s and payload_bytes in the file of --cluster");
}

void MeasureCommand::check(const fast::Group& group) const {
  const std::map<int, int> sizes = host_sizes(group.hosts());
  const auto [least, most] = std::minmax_element(
      sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  require(group.size() > 1, ErrorKind::argument,
          "plan --measure: there is one rank; start one for each worker: fastrun -n 4 "
          "fast-topology plan --measure");
  require(least->second == most->second, ErrorKind::argument,
          "plan --measure: the hosts have {} to {} ranks; start as many on each", least->second,
          most->second);
  require(write_cluster_.empty() || group.rank() != 0 ||
              std::ofstream(write_cluster_, std::ios::app).good(),
          ErrorKind::resource, "--write-cluster: {} cannot be written; choose another file",
          write_cluster_);
}

MeasuredCluster MeasureCommand::measure(const mpi::Communicator& world) const {
  const fast::Group group(world);
  MeasuredCluster measured;
  Cluster& cluster = measured.cluster;
  agree(group, Deadline(patience), "plan --measure", [&] {
    check(group);
    cluster.hosts = static_cast<int>(host_sizes(group.hosts()).size());
    cluster.workers_per_host = group.size() / cluster.hosts;
    cluster.payload_bytes =
        4 * (parameters_
                 ? *parameters_
                 : static_cast<double>(nn::parameter_count(nn::model_by_name(model_, classes))));
  });
  time_steps_of(group, cluster);
  LinkMeasureOptions options;
  options.budget = Seconds(budget_s_);
  measured.links = measure_links(world, group.hosts(), options);
  cluster.link_bandwidth = measured.links.bandwidth;
  cluster.link_latency_s = measured.links.latency_s;
  cluster.link_jitter = std::min(measured.links.jitter, 3.0);
  if (measured.links.memory_bandwidth > 0)
    cluster.memory_bandwidth = measured.links.memory_bandwidth;
  return measured;
}

/// All ranks at the same time, as in a run.
void MeasureCommand::time_steps_of(const fast::Group& group, Cluster& cluster) const {
  StepTimes times;
  agree(group, Deadline(longest_steps), "plan --measure: steps", [&] {
    times = step_ms_ ? StepTimes{*step_ms_ / 1e3, 0}
                     : time_steps(step_of(model_, batch_size_), step_budget);
  });
  const auto all = [&](double value) {
    return mean(group.all_gather(fmt::format("{}", value), Deadline(patience), "step times"));
  };
  cluster.step_s = all(times.mean_s);
  cluster.step_jitter = std::min(all(times.jitter), 3.0);
}

void MeasureCommand::write(const MeasuredCluster& measured) const {
  if (write_cluster_.empty()) return;
  std::ofstream file(write_cluster_);
  file << "# Written by fast-topology plan --measure\n" << cluster_text(measured.cluster);
  require(file.flush().good(), ErrorKind::resource,
          "--write-cluster: {} cannot be written; choose another file", write_cluster_);
}

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
