#include "fast_report/workers.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "fast_report/time_use.hpp"

namespace fast_report {

namespace {

const Part* newest_part(const Run& run, int rank) {
  const auto found = run.workers.find(rank);
  if (found == run.workers.end() || found->second.parts.empty()) return nullptr;
  const Part& last = found->second.parts.back();
  return last.number + 1 == parts_of(run.workers) ? &last : nullptr;
}

bool has_event(const Part& part, const std::string& name) {
  return std::ranges::any_of(part.events, [&](const Event& event) { return event.name == name; });
}

/// Those whom each worker suspected last. By who suspects.
std::map<int, std::set<int>> suspicions(const Run& run) {
  std::map<int, std::set<int>> suspected;
  for (const auto& [rank, worker] : run.workers) {
    const Part* part = newest_part(run, rank);
    if (part == nullptr) continue;
    for (const Event& event : part->events) {
      if (!event.about) continue;
      if (event.name == "suspected") suspected[*event.about].insert(rank);
      if (event.name == "returned") suspected[*event.about].erase(rank);
    }
  }
  return suspected;
}

/// Runs of older versions have events only.
bool ended(const Part& part, const std::string& state) {
  return has_event(part, state) || (part.end && part.end->text("state") == state);
}

State state_of(const Part* part, bool lost, bool suspected) {
  if (part != nullptr) {
    if (ended(*part, "failed")) return State::failed;
    if (ended(*part, "stopped")) return State::stopped;
    if (ended(*part, "left")) return State::left;
    if (part->end) return State::finished;
  }
  if (lost) return State::lost;
  if (suspected) return State::suspected;
  return part == nullptr ? State::no_data : State::no_end;
}

std::string failure_in(const Part& part) {
  std::string text;
  for (const Event& event : part.events) {
    if (event.name == "failed") text = event.text;
  }
  return text;
}

std::string listed(const std::set<int>& workers) {
  return fmt::format("{}", fmt::join(workers, ", "));
}

}  // namespace

std::string name(State state) {
  constexpr const char* names[] = {"finished",
                                   "stopped on request",
                                   "left on request",
                                   "failed",
                                   "no end recorded",
                                   "suspected",
                                   "lost",
                                   "no data"};
  return names[static_cast<std::size_t>(state)];
}

std::set<int> named_lost(const Run& run) {
  std::set<int> lost;
  for (const auto& [rank, worker] : run.workers) {
    const Part* part = newest_part(run, rank);
    if (part == nullptr || !part->end) continue;
    for (const int other : part->end->ranks("lost")) lost.insert(other);
  }
  return lost;
}

std::map<int, WorkerState> states(const Run& run) {
  const std::set<int> lost = named_lost(run);
  const auto suspected = suspicions(run);
  std::map<int, WorkerState> states;
  for (int rank = 0; rank < run.size; ++rank) states[rank];
  for (const auto& [rank, worker] : run.workers) states[rank];
  for (auto& [rank, state] : states) {
    const auto by = suspected.find(rank);
    const bool is_suspected = by != suspected.end() && !by->second.empty();
    state.state = state_of(newest_part(run, rank), lost.count(rank) > 0, is_suspected);
    if (is_suspected) state.detail = "last suspected by worker " + listed(by->second);
    if (state.state == State::failed) state.detail = failure_in(*newest_part(run, rank));
    if (state.state == State::finished && lost.count(rank) > 0) {
      state.detail = "it finished, but others ended without it";
    }
  }
  return states;
}

using nlohmann::json;

namespace {

/// The sides in "torus 2x4"; nothing unless they make that many workers.
std::optional<std::pair<int, int>> sides_in(const std::string& topology, int workers) {
  const std::string last = topology.substr(topology.find_last_of(' ') + 1);
  int rows = 0, columns = 0;
  const char* end = last.data() + last.size();
  const auto first = std::from_chars(last.data(), end, rows);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != 'x') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, columns);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  const bool fits = rows > 1 && columns > 1 && std::int64_t{rows} * columns == workers;
  return fits ? std::optional(std::pair(rows, columns)) : std::nullopt;
}

/// -1, 1: the edge between two ends of a line of `length` places is drawn outwards. 0: it is not.
int outwards(int from, int to, int length) {
  return length > 2 && std::abs(from - to) == length - 1 ? (from == 0 ? -1 : 1) : 0;
}

constexpr double stub = 0.5;

}  // namespace

Places::Places(int workers, const std::string& topology) : workers_(std::max(1, workers)) {
  if (const auto sides = sides_in(topology, workers)) std::tie(rows_, columns_) = *sides;
}

Place Places::at(int worker) const {
  if (is_grid()) {
    return {static_cast<double>(worker % columns_), -static_cast<double>(worker / columns_)};
  }
  const double radius = workers_ < 2 ? 0 : std::max(0.8, workers_ / (2 * std::numbers::pi));
  const double angle = 2 * std::numbers::pi * worker / workers_;
  return {radius * std::sin(angle), radius * std::cos(angle)};
}

Place Places::halfway(int reader, int peer) const {
  const Place from = at(reader), to = at(peer);
  if (is_grid()) {
    const int across = outwards(reader % columns_, peer % columns_, columns_);
    const int down = outwards(reader / columns_, peer / columns_, rows_);
    if (across != 0 && from.y == to.y) return {from.x + stub * across, from.y};
    if (down != 0 && from.x == to.x) return {from.x, from.y - stub * down};
  }
  return {(from.x + to.x) / 2, (from.y + to.y) / 2};
}

namespace {

/// Those whom a worker reads or has waited for.
std::set<int> sources_of(const Worker& worker, const TimeSpent& spent) {
  std::set<int> sources;
  for (const int peer : worker.parts.back().start.ranks("neighbors")) sources.insert(peer);
  for (const auto& [peer, seconds] : spent.waits_s) sources.insert(peer);
  sources.erase(worker.rank);
  return sources;
}

json edge(const Places& places, int reader, int peer, const TimeSpent& spent) {
  const Place from = places.at(reader), to = places.halfway(reader, peer);
  const auto waited = spent.waits_s.find(peer);
  const double waited_s = waited == spent.waits_s.end() ? 0 : waited->second;
  const double all_s = spent.seconds();
  return {{"x", from.x},          {"y", from.y},
          {"x2", to.x},           {"y2", to.y},
          {"worker", reader},     {"peer", peer},
          {"waited_s", waited_s}, {"share", all_s > 0 ? waited_s / all_s : 0}};
}

json node(const Place& place, int rank, const WorkerState& state) {
  return {{"worker", rank},
          {"x", place.x},
          {"y", place.y},
          {"state", name(state.state)},
          {"detail", state.detail}};
}

void add_facts(json& node, const Run& run, int rank, const std::map<int, TimeSpent>& totals) {
  const auto found = run.workers.find(rank);
  if (found == run.workers.end()) return;
  const TimeSpent& spent = totals.at(rank);
  node["host"] = found->second.parts.back().start.text("host").value_or("");
  node["rounds"] = rounds_of(found->second);
  node["wait_share"] = spent.wait_share();
}

}  // namespace

Network network(const Run& run, const std::map<int, WorkerState>& states) {
  const int last = states.empty() ? 0 : states.rbegin()->first;
  const Places places(std::max(run.size, last + 1), run.start().text("topology").value_or(""));
  const auto spent = totals(run);
  Network network;
  for (const auto& [rank, state] : states) {
    const Place place = places.at(rank);
    json one = node(place, rank, state);
    add_facts(one, run, rank, spent);
    network.nodes.push_back(std::move(one));
    network.width = std::max(network.width, 2 * std::abs(place.x));
    network.height = std::max(network.height, 2 * std::abs(place.y));
  }
  network.is_grid = places.is_grid();
  if (network.is_grid) {
    network.width = places.columns();
    network.height = places.rows();
  }
  for (const auto& [rank, worker] : run.workers) {
    for (const int peer : sources_of(worker, spent.at(rank))) {
      if (states.count(peer) > 0) network.edges.push_back(edge(places, rank, peer, spent.at(rank)));
    }
  }
  return network;
}

}  // namespace fast_report
