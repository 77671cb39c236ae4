#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "train/overview.hpp"

namespace fast::train {
namespace {

using Row = std::pair<const char*, std::string>;

/// "NAME, COUNT THINGS", or without the name if there is none.
std::string with_count(const std::string& name, std::size_t count, const char* things) {
  return fmt::format("{}{}{} {}", name, name.empty() ? "" : ", ", count, things);
}

std::vector<Row> training_rows(const TrainingOverview& training, int workers) {
  const std::size_t all = training.batch_size * static_cast<std::size_t>(workers);
  std::vector<Row> rows = {
      {"data", with_count(training.data, training.samples, "samples to train on")},
      {"validation", training.validation},
      {"model", with_count(training.model, training.parameters, "parameters")},
      {"batch", training.balance.empty()
                    ? fmt::format("{} on each worker, {} in all", training.batch_size, all)
                    : fmt::format("{} in all, {}", all, training.balance)},
      {"optimizer", training.optimizer},
      {"learning rate", training.learning_rate},
      {"epochs", fmt::format("{}{} of {} rounds", training.epochs,
                             training.epochs == 1 ? "" : ", each", training.epoch_rounds)},
      {"seed", fmt::format("{}", training.seed)},
  };
  auto place = rows.begin() + 1;
  for (const std::string& note : training.notes) place = rows.insert(place, {"note", note}) + 1;
  std::erase_if(rows, [](const Row& row) { return row.second.empty(); });
  return rows;
}

Row placement_row(const Placement& placement) {
  const std::string of = fmt::format(" of {}", placement.edges);
  if (placement.cut_after == placement.cut_before) {
    return {"edges between hosts", fmt::format("{}{}, in rank order", placement.cut_after, of)};
  }
  return {"edges between hosts",
          fmt::format("{}{}, in rank order {}", placement.cut_after, of, placement.cut_before)};
}

/// "3 workers on cuda:0 (NVIDIA H200), 1 on cpu", in the order of each device's first worker.
std::string share_of_devices(const std::vector<std::string>& devices) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& device : devices) {
    const auto found =
        std::ranges::find_if(counts, [&](const auto& count) { return count.first == device; });
    if (found != counts.end())
      ++found->second;
    else
      counts.emplace_back(device, 1);
  }
  std::string text;
  for (const auto& [device, count] : counts)
    text += text.empty() ? fmt::format("{} worker{} on {}", count, count == 1 ? "" : "s", device)
                         : fmt::format(", {} on {}", count, device);
  return text;
}

/// What is read from neighbors, and how.
std::vector<Row> averaging_rows(const Overview& o) {
  std::vector<Row> rows = {{"topology", o.topology}};
  if (!o.unconnected.empty()) rows.emplace_back("connected", "no: " + o.unconnected);
  const Spectrum& spectrum = o.in_use();
  if (std::isfinite(spectrum.gap)) {
    rows.emplace_back("spectral gap",
                      fmt::format("{}{:.4g}", spectrum.converged ? "" : "at most ", spectrum.gap));
  }
  if (o.lazy_spectrum) rows.emplace_back("mixing weights", "lazy, (I + W) / 2, for " + o.algorithm);
  rows.insert(rows.end(), {{"exchange", o.exchange},
                           {"algorithm", o.algorithm},
                           {"codec", o.codec},
                           {"staleness", o.staleness}});
  if (o.placement) rows.push_back(placement_row(*o.placement));
  if (o.stability) {
    rows.emplace_back("stable for", fmt::format("learning rate x curvature < {:.3g} (momentum {})",
                                                *o.stability, o.momentum));
  }
  return rows;
}

}  // namespace

std::string Overview::to_table() const {
  std::vector<Row> rows = {{"workers", hosts == 1 ? fmt::format("{}", workers)
                                                  : fmt::format("{} on {} hosts", workers, hosts)}};
  if (!devices.empty()) rows.emplace_back("devices", share_of_devices(devices));
  if (all_reduces(exchange)) {
    rows.emplace_back("exchange", exchange);
  } else {
    const std::vector<Row> averaging = averaging_rows(*this);
    rows.insert(rows.end(), averaging.begin(), averaging.end());
  }
  if (training) {
    const std::vector<Row> first = training_rows(*training, workers);
    rows.insert(rows.begin(), first.begin(), first.end());
  }
  std::string table;
  for (const auto& [name, value] : rows) table += fmt::format("  {:<28}  {}\n", name, value);
  return table;
}

Schedule lay_out(const Schedule& schedule, const std::vector<int>& host_of_rank, bool may_move,
                 Overview& overview) {
  overview.hosts = static_cast<int>(std::set<int>(host_of_rank.begin(), host_of_rank.end()).size());
  if (overview.hosts == 1 || schedule.period() == 0) return schedule;
  Placement& placement = overview.placement.emplace(place(schedule, host_of_rank));
  if (!may_move) {
    std::iota(placement.worker_of_rank.begin(), placement.worker_of_rank.end(), 0);
    placement.cut_after = placement.cut_before;
  }
  const bool moved = placement.cut_after < placement.cut_before;
  return moved ? placed(schedule, placement.worker_of_rank) : schedule;
}

}  // namespace fast::train
