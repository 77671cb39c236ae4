#include "chaos/tally.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "chaos/bounds.hpp"

namespace chaos {

void Tally::add(const Plan& plan, const Verdict& verdict) {
  const std::lock_guard lock(one_at_a_time_);
  const bool failed = !verdict.wrong.empty();
  ++schedules_;
  failures_ += failed ? 1 : 0;
  ++faults_[verdict.fault];
  if (!plan.killed().empty()) longest_s_ = std::max(longest_s_, verdict.held_s);
  std::set<Kind> kinds;
  for (const Event& event : plan.events) kinds.insert(event.kind);
  for (const Kind kind : kinds) {
    Cell& cell = cells_[{plan.rule, kind}];
    ++cell.schedules;
    cell.failures += failed ? 1 : 0;
    cell.worst = std::max(cell.worst, verdict.distance.value_or(0));
  }
}

std::string Tally::table() const {
  std::set<Kind> kinds;
  for (const auto& [place, cell] : cells_) kinds.insert(place.second);
  std::string text = fmt::format("{:<22}", "rule");
  for (const Kind kind : kinds) text += fmt::format("{:>12}", name(kind));
  for (const Bound& bound : bounds()) {
    std::string row = fmt::format("\n{:<22}", bound.rule);
    int schedules = 0;
    for (const Kind kind : kinds) {
      const auto found = cells_.find({std::string(bound.rule), kind});
      const Cell cell = found == cells_.end() ? Cell{} : found->second;
      schedules += cell.schedules;
      const std::string wrong = cell.failures > 0 ? fmt::format("!{}", cell.failures) : "";
      row += cell.schedules == 0 ? fmt::format("{:>12}", "-")
                                 : fmt::format("{:>12}", fmt::format("{}{} {:.4f}", cell.schedules,
                                                                     wrong, cell.worst));
    }
    if (schedules > 0) text += row;
  }
  return text + "\n";
}

std::string Tally::summary() const {
  const auto count = [&](Fault fault) {
    const auto found = faults_.find(fault);
    return found == faults_.end() ? 0 : found->second;
  };
  return fmt::format(
      "{} schedules, {} failures: {} hangs, {} with torn reads, {} with lost checkpoints, {} "
      "other; "
      "survivors of deaths were held for {:.2f} s at most",
      schedules_, failures_, count(Fault::hang), count(Fault::torn), count(Fault::checkpoint),
      count(Fault::other), longest_s_);
}

}  // namespace chaos
