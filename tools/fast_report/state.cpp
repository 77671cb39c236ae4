#include "fast_report/state.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "fast_report/timeline.hpp"

namespace fast_report {

namespace {

const Part* newest_part(const Run& run, int rank) {
  const auto found = run.workers.find(rank);
  if (found == run.workers.end() || found->second.parts.empty()) return nullptr;
  const Part& last = found->second.parts.back();
  return last.number + 1 == parts_of(run.workers) ? &last : nullptr;
}

bool has_event(const Part& part, const std::string& name) {
  return std::any_of(part.events.begin(), part.events.end(),
                     [&](const Event& event) { return event.name == name; });
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
  switch (state) {
    case State::finished:
      return "finished";
    case State::stopped:
      return "stopped on request";
    case State::left:
      return "left on request";
    case State::failed:
      return "failed";
    case State::no_end:
      return "no end recorded";
    case State::suspected:
      return "suspected";
    case State::lost:
      return "lost";
    default:
      return "no data";
  }
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

}  // namespace fast_report
