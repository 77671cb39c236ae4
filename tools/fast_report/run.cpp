#include "fast_report/run.hpp"

#include <algorithm>

namespace fast_report {

void TimeSpent::add(const TimeSpent& other) {
  for (const auto& [phase, seconds] : other.phases_s) phases_s[phase] += seconds;
  for (const auto& [peer, seconds] : other.waits_s) waits_s[peer] += seconds;
}

double TimeSpent::seconds() const {
  double sum = 0;
  for (const auto& [phase, seconds] : phases_s) sum += seconds;
  return sum;
}

double TimeSpent::phase(const std::string& name) const {
  const auto found = phases_s.find(name);
  return found == phases_s.end() ? 0 : found->second;
}

double TimeSpent::wait_share() const {
  const double sum = seconds();
  return sum > 0 ? phase("wait") / sum : 0;
}

const Fields& Run::start() const {
  static const Fields none;
  const Fields* newest = &none;
  int number = -1;
  for (const auto& [rank, worker] : workers) {
    for (const Part& part : worker.parts) {
      if (part.number <= number || part.start.object().empty()) continue;
      newest = &part.start;
      number = part.number;
    }
  }
  return *newest;
}

std::optional<std::string> Run::option(const std::string& name) const {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace fast_report
