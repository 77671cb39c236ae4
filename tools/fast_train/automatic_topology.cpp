#include "fast_train/automatic_topology.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <fast/worker/choose_topology.hpp>

namespace fast_train {

using namespace fast;

namespace {

constexpr char automatic[] = "auto";

/// Of each worker; spares come after them.
std::vector<int> hosts_of_workers(const Group& ranks, const Options& o) {
  if (o.exchange == "local") return std::vector<int>(static_cast<std::size_t>(o.workers));
  std::vector<int> hosts = ranks.hosts();
  if (static_cast<std::size_t>(o.spares) < hosts.size()) {
    hosts.resize(hosts.size() - static_cast<std::size_t>(o.spares));
  }
  return hosts;
}

}  // namespace

void choose_topology(const Group& ranks, Options& o) {
  agree(ranks, Deadline(o.trainer.worker.deadline), "fast-train: choosing a topology", [&] {
    if (o.topology != automatic) return;
    const WorkerOptions& worker = o.trainer.worker;
    const ChosenTopology chosen = fast::choose_topology(
        hosts_of_workers(ranks, o),
        {o.rule.rule().declaration(), worker.staleness, worker.weights, worker.lazy_weights});
    o.topology = chosen.name;
    if (ranks.rank() == 0) {
      fmt::print(stderr, "topology: {} ({})\n", chosen.name, chosen.reason);
    }
  });
}

}  // namespace fast_train
