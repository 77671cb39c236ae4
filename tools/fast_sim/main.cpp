// fast-sim: training runs without weights, on simulated networks.

#include "fast_sim/options.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fast/core/error.hpp>
#include <fast/simulation/workload.hpp>

#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "core/message.hpp"

namespace fast_sim {
namespace {

using fast::simulation::Workload;
using nlohmann::ordered_json;

std::string exchange_of(const Workload& load) {
  if (load.pattern == fast::simulation::Pattern::neighbors) return load.schedule.name();
  return std::string(fast::simulation::name(load.pattern));
}

void print_json(const Result& result, const Workload& load, const Options& options) {
  const auto& f = result.figures;
  ordered_json json = {
      {"exchange", exchange_of(load)},
      {"workers", load.schedule.workers()},
      {"model", options.model},
      {"rounds", load.rounds},
      {"seconds", f.total_s},
      {"seconds_per_round",
       {{"mean", f.mean_s}, {"worker", f.worker_s}, {"median", f.median_s}, {"p95", f.p95_s}}},
      {"waiting_share", f.waiting_share},
      {"fresh_share", f.fresh_share ? ordered_json(*f.fresh_share) : ordered_json()},
      {"mean_age", f.mean_age},
      {"reads", f.reads},
      {"left_out", f.left_out},
      {"failures", f.failures}};
  json["link_bytes"] = ordered_json::object();
  for (const auto& [link, size_bytes] : result.link_bytes) json["link_bytes"][link] = size_bytes;
  fmt::print("{}\n", json.dump(2));
}

template <class... Args>
void line(const char* label, fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{:<24}{}\n", label, fmt::format(format, std::forward<Args>(args)...));
}

void print_text(const Result& result, const Workload& load, const Options& options) {
  const auto& f = result.figures;
  line("exchange", "{}", exchange_of(load));
  line("workers", "{}", load.schedule.workers());
  line("simulated by", "{}", options.model);
  line("seconds", "{:.6g} for {} rounds", f.total_s, load.rounds);
  line("seconds per round", "{:.6g} (median), {:.6g} (95 %)", f.median_s, f.p95_s);
  line("waiting", "{:.2f} %", 100 * f.waiting_share);
  if (f.fresh_share) {
    line("fresh reads", "{:.2f} %, mean age {:.3g} rounds", 100 * *f.fresh_share, f.mean_age);
  }
  if (f.left_out > 0) line("left out", "{} of {} reads", f.left_out, f.left_out + f.reads);
  if (f.failures > 0) line("failures", "{}", f.failures);
  for (std::size_t k = 0; k < std::min(options.links, result.link_bytes.size()); ++k) {
    const auto& [link, size_bytes] = result.link_bytes[k];
    line(k == 0 ? "bytes per link" : "", "{:.4g}  {}", size_bytes, link);
  }
}

}  // namespace

void print_result(const Result& result, const Workload& load, const Options& options) {
  if (options.json) {
    print_json(result, load, options);
  } else {
    print_text(result, load, options);
  }
}

}  // namespace fast_sim

using namespace fast;

namespace {

// Each message has its path for itself: two links of a star.
fast_sim::Result recur(const simulation::Workload& load, const fast_sim::Options& options) {
  const auto transfer = [&](std::int64_t, int from, int to, double size_bytes) {
    if (from / options.workers_per_host == to / options.workers_per_host) {
      return size_bytes / options.memory_bandwidth;
    }
    return 2 * options.platform.latency_s + size_bytes / options.platform.bandwidth;
  };
  return {simulation::recur(load, transfer), {}};
}

int run(int argc, char** argv) {
  tools::Command command("fast-sim", "Simulates training runs on networks. Weights are left out.",
                         "fast-sim -n 16 --topology torus2d --rounds 100");
  fast_sim::Options options;
  fast_sim::add_options(command, options);
  if (const auto status = tools::parse(command, argc, argv)) return *status;
  const simulation::Workload load = fast_sim::workload_of(options);
  fast_sim::check_effects(command, options);
  const bool recurs = options.model == "recurrence";
  print_result(recurs ? recur(load, options) : run_on_network(load, options), load, options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-sim", [&] { return run(argc, argv); });
}
