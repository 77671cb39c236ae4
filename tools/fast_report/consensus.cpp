#include "fast_report/consensus.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/mixing/spectrum.hpp>
#include <fast/topology/load.hpp>

namespace fast_report {

using nlohmann::json;

namespace {

/// The rules whose rounds are x ← W x plus the worker's own step, with one exchange each.
bool averages_each_round(const std::string& rule) { return rule == "awc" || rule == "atc"; }

bool is_number(const std::string& text, double value) {
  return !text.empty() && std::strtod(text.c_str(), nullptr) == value &&
         text.find_first_not_of("0123456789.") == std::string::npos;
}

std::string of(const Run& run, const std::string& name, const std::string& otherwise) {
  if (const auto option = run.option(name)) return *option;
  return run.start().text(name).value_or(otherwise);
}

/// Why 1 - gap does not describe this run's rounds; empty when it does.
std::string rules_out(const Run& run) {
  const std::string rule = of(run, "algorithm", "awc"), staleness = of(run, "staleness", "0");
  if (!averages_each_round(rule)) return "The rule " + rule + " does not average once a round.";
  if (!is_number(staleness, 0)) {
    return "At staleness " + staleness + " workers average old weights.";
  }
  if (!is_number(of(run, "mix-every", "1"), 1)) return "Workers do not average after each step.";
  if (run.size < 2) return "There is one worker.";
  return "";
}

fast::WeightRule weights_of(const Run& run) {
  return fast::weight_rule_by_name(of(run, "weights", "automatic"));
}

Contraction computed(const Run& run, const std::string& topology) {
  const fast::Schedule schedule = fast::topology_from(topology).make(run.size);
  if (!schedule.is_static()) return {{}, "The topology changes from round to round."};
  const bool lazy = of(run, "lazy-weights", "false") == "true";
  const fast::Spectrum spectrum = fast::spectrum(schedule, weights_of(run), lazy);
  if (!spectrum.doubly_stochastic) return {{}, "The mixing weights are not doubly stochastic."};
  const double gap = run.start().number("spectral_gap").value_or(spectrum.gap);
  if (!(gap > 0)) return {{}, "The spectral gap is 0."};
  return {std::min(gap, 1.0), ""};
}

}  // namespace

double Contraction::rounds_per_tenth() const {
  return gap && *gap < 1 ? std::log(0.1) / std::log1p(-*gap) : 0;
}

Contraction contraction(const Run& run) {
  const std::string reason = rules_out(run);
  if (!reason.empty()) return {{}, reason};
  const auto topology = run.option("topology");
  if (!topology) return {{}, "The options of the run are unknown."};
  try {
    return computed(run, *topology);
  } catch (const fast::Error& error) {
    return {{}, std::string("The topology cannot be built again: ") + error.what()};
  }
}

json prediction(const std::vector<Point>& means, double gap) {
  std::vector<Point> positive;
  std::copy_if(means.begin(), means.end(), std::back_inserter(positive),
               [](const Point& point) { return point.value > 0; });
  json rows = json::array();
  const auto smaller = [](const Point& a, const Point& b) { return a.value < b.value; };
  const auto [floor, top] = std::minmax_element(positive.begin(), positive.end(), smaller);
  if (positive.empty() || floor->value == top->value) return rows;
  const double falls = gap < 1 ? std::log(floor->value / top->value) / std::log1p(-gap) : 1;
  rows.push_back({{"rounds", top->rounds}, {"value", top->value}});
  rows.push_back({{"rounds", top->rounds + falls}, {"value", floor->value}});
  const double last = positive.back().rounds;
  if (top->rounds + falls < last) rows.push_back({{"rounds", last}, {"value", floor->value}});
  return rows;
}

}  // namespace fast_report
