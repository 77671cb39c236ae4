#include "fast_report/totals.hpp"

#include <algorithm>

namespace fast_report {

namespace {

TimeSpent added(const std::vector<Measurement>& measurements) {
  TimeSpent all;
  for (const Measurement& one : measurements) all.add(one.spent);
  return all;
}

std::int64_t last_round(const std::vector<Measurement>& measurements) {
  std::int64_t most = 0;
  for (const Measurement& one : measurements) {
    most = std::max(most, one.fields.integer("step").value_or(0));
  }
  return most;
}

}  // namespace

TimeSpent total(const Worker& worker) {
  TimeSpent all;
  for (const Part& part : worker.parts) {
    const TimeSpent epochs = added(part.epochs), intervals = added(part.intervals);
    all.add(epochs.seconds() >= intervals.seconds() ? epochs : intervals);
  }
  return all;
}

std::map<int, TimeSpent> totals(const Run& run) {
  std::map<int, TimeSpent> totals;
  for (const auto& [rank, worker] : run.workers) totals[rank] = total(worker);
  return totals;
}

TimeSpent sum(const std::map<int, TimeSpent>& totals) {
  TimeSpent all;
  for (const auto& [rank, spent] : totals) all.add(spent);
  return all;
}

std::map<int, double> waited_for(const std::map<int, TimeSpent>& totals) {
  std::map<int, double> seconds;
  for (const auto& [rank, spent] : totals) {
    for (const auto& [peer, waited_s] : spent.waits_s) seconds[peer] += waited_s;
  }
  return seconds;
}

std::vector<std::string> phases_in_order(const TimeSpent& all) {
  std::vector<std::string> phases;
  for (const char* known : {"step", "publish", "wait", "mix", "rest"}) {
    if (all.phases_s.count(known) > 0) phases.emplace_back(known);
  }
  for (const auto& [phase, seconds] : all.phases_s) {
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) phases.push_back(phase);
  }
  return phases;
}

std::int64_t rounds_of(const Worker& worker) {
  std::int64_t most = 0;
  for (const Part& part : worker.parts) {
    most = std::max({most, last_round(part.epochs), last_round(part.intervals)});
    if (part.end) most = std::max(most, part.end->integer("step").value_or(0));
  }
  return most;
}

double seconds_of(const Worker& worker) {
  double seconds = 0;
  for (const Part& part : worker.parts) seconds += part.last_s;
  return seconds;
}

}  // namespace fast_report
