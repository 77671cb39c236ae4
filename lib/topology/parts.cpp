#include <fmt/ranges.h>

#include <algorithm>
#include <fast/topology/parts.hpp>
#include <numeric>

namespace fast {
namespace {

constexpr std::int64_t rounds_of_endless = 64;  ///< that are looked at

int root_of(std::vector<int>& parent, int worker) {
  while (parent[static_cast<std::size_t>(worker)] != worker) {
    worker = parent[static_cast<std::size_t>(worker)] =
        parent[static_cast<std::size_t>(parent[static_cast<std::size_t>(worker)])];
  }
  return worker;
}

}  // namespace

std::int64_t rounds_with_all_edges(const Schedule& schedule) {
  return schedule.period_or(rounds_of_endless);
}

std::vector<std::vector<int>> living_parts(const Schedule& schedule, const std::vector<int>& dead) {
  const int workers = schedule.workers();
  std::vector<bool> lives(static_cast<std::size_t>(workers), true);
  for (const int worker : dead) lives[static_cast<std::size_t>(worker)] = false;
  std::vector<int> parent(static_cast<std::size_t>(workers));
  std::iota(parent.begin(), parent.end(), 0);
  auto left = std::count(lives.begin(), lives.end(), true);  // parts
  const std::int64_t rounds = rounds_with_all_edges(schedule);
  for (std::int64_t round = 0; round < rounds && left > 1; ++round) {
    const Topology topology = schedule.at(round);
    for (int worker = 0; worker < workers; ++worker) {
      for (const int neighbor : topology.in_neighbors(worker)) {
        if (!lives[static_cast<std::size_t>(worker)] || !lives[static_cast<std::size_t>(neighbor)])
          continue;
        const int a = root_of(parent, worker), b = root_of(parent, neighbor);
        if (a != b) --left;
        parent[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
      }
    }
  }
  std::vector<std::vector<int>> by_root(static_cast<std::size_t>(workers)), parts;
  for (int worker = 0; worker < workers; ++worker) {
    if (lives[static_cast<std::size_t>(worker)])
      by_root[static_cast<std::size_t>(root_of(parent, worker))].push_back(worker);
  }
  for (auto& part : by_root) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return parts;
}

std::string describe_parts(const std::vector<std::vector<int>>& parts) {
  std::vector<std::string> texts;
  for (const auto& part : parts) texts.push_back(fmt::format("{{{}}}", fmt::join(part, ", ")));
  return fmt::format("{}", fmt::join(texts, " and "));
}

}  // namespace fast
