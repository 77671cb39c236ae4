#include "fast_report/curves.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/load.hpp>
#include <set>

#include "fast_report/time_use.hpp"
#include "fast_report/workers.hpp"

namespace fast_report {

using nlohmann::json;

namespace {

/// About every k-th, and the last.
template <class T>
std::vector<T> thinned(std::vector<T> all) {
  if (all.size() <= most_points) return all;
  const std::size_t every = (all.size() + most_points - 1) / most_points;
  std::vector<T> kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % every == 0 || i + 1 == all.size()) kept.push_back(all[i]);
  }
  return kept;
}

/// "validation_accuracy" and "validation_loss" are means over "validation_samples"; others count
/// alike for all workers.
double weight_of(const Fields& epoch, const std::string& field) {
  for (const char* part : {"validation", "test"}) {
    if (!field.starts_with(std::string(part) + "_")) continue;
    return std::max(0.0, epoch.number(std::string(part) + "_samples").value_or(1));
  }
  return 1;
}

std::optional<Point> point_of(const Worker& worker, const Part& part, const Measurement& epoch,
                              const std::string& field) {
  const auto number = epoch.fields.integer("epoch");
  const auto value = epoch.fields.number(field);
  if (!number || !value) return std::nullopt;
  return Point{worker.rank,
               part.number,
               *number,
               epoch.fields.number("step").value_or(0),
               part.at(epoch.seconds),
               *value,
               weight_of(epoch.fields, field)};
}

json row_of(const Point& point, const std::string& measure) {
  return {{"worker", point.worker},   {"part", point.part}, {"epoch", point.epoch},
          {"seconds", point.seconds}, {"measure", measure}, {"value", point.value}};
}

}  // namespace

std::vector<Point> points(const Run& run, const std::string& field) {
  std::vector<Point> all;
  for (const auto& [rank, worker] : run.workers) {
    std::vector<Point> own;
    for (const Part& part : worker.parts) {
      for (const Measurement& epoch : part.epochs) {
        if (const auto point = point_of(worker, part, epoch, field)) own.push_back(*point);
      }
    }
    own = thinned(std::move(own));
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

namespace {

/// Of the same epoch and part; at least one.
Point mean_of(const std::vector<Point>& group) {
  const auto count = static_cast<double>(group.size());
  Point mean{static_cast<int>(group.size()), group.front().part, group.front().epoch};
  mean.weight = 0;
  for (const Point& point : group) {
    mean.rounds += point.rounds / count;
    mean.seconds += point.seconds / count;
    mean.weight += point.weight;
  }
  for (const Point& point : group) {
    mean.value += point.value * (mean.weight > 0 ? point.weight / mean.weight : 1 / count);
  }
  return mean;
}

}  // namespace

std::vector<Point> means(const std::vector<Point>& points) {
  std::map<std::pair<int, std::int64_t>, std::vector<Point>> groups;
  for (const Point& point : points) groups[{point.part, point.epoch}].push_back(point);
  std::vector<Point> means;
  for (const auto& [key, group] : groups) means.push_back(mean_of(group));
  return means;
}

namespace {

/// Workers that others may still expect epochs of. None if a worker has ended.
std::set<int> unfinished(const Run& run) {
  std::set<int> workers;
  for (const auto& [rank, state] : states(run)) {
    if (state.state == State::finished || state.state == State::stopped) return {};
    if (state.state == State::no_end || state.state == State::failed) workers.insert(rank);
  }
  return workers;
}

}  // namespace

std::vector<Point> means(const Run& run, const std::string& field) {
  std::vector<Point> all = points(run, field);
  const std::set<int> waited_for = unfinished(run);
  const int newest = parts_of(run.workers) - 1;
  std::map<int, std::int64_t> last;  // epoch of each in the newest part
  for (const Point& point : all) {
    if (point.part == newest && waited_for.count(point.worker) > 0) {
      last[point.worker] = std::max(last[point.worker], point.epoch);
    }
  }
  if (last.empty()) return means(all);
  const auto slowest = std::ranges::min_element(
      last, [](const auto& a, const auto& b) { return a.second < b.second; });
  std::erase_if(all, [&](const Point& point) {
    return point.part == newest && point.epoch > slowest->second;
  });
  return means(all);
}

std::optional<double> last_mean(const Run& run, const std::string& field) {
  const std::vector<Point> all = means(run, field);
  return all.empty() ? std::nullopt : std::optional(all.back().value);
}

bool are_same(const Run& run, const std::string& field, const std::string& other) {
  const std::vector<Point> some = points(run, field), others = points(run, other);
  return !some.empty() && std::equal(some.begin(), some.end(), others.begin(), others.end(),
                                     [](const Point& a, const Point& b) {
                                       return a.worker == b.worker && a.epoch == b.epoch &&
                                              a.value == b.value;
                                     });
}

Curves curves(const Run& run, const std::vector<Measure>& measures) {
  Curves curves;
  for (auto measure = measures.begin(); measure != measures.end(); ++measure) {
    const bool again = std::any_of(measure + 1, measures.end(), [&](const Measure& later) {
      return are_same(run, measure->field, later.field);
    });
    if (again) continue;
    const std::vector<Point> all = points(run, measure->field);
    for (const Point& point : all) curves.workers.push_back(row_of(point, measure->name));
    for (const Point& point : means(run, measure->field)) {
      curves.mean.push_back(row_of(point, measure->name));
    }
  }
  return curves;
}

json joint_means(const std::vector<Run>& runs, const std::vector<std::string>& names,
                 const std::string& field) {
  json rows = json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Point& point : means(runs[i], field)) {
      json row = row_of(point, names[i]);
      row["rounds"] = point.rounds;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

namespace {

const std::vector<Measurement>& finest(const Part& part) {
  return part.intervals.size() > 1 ? part.intervals : part.epochs;
}

/// Of one worker, thinned.
std::vector<Point> speeds(const Worker& worker) {
  std::vector<Point> own;
  for (const Part& part : worker.parts) {
    for (const Measurement& one : finest(part)) {
      const auto speed = one.fields.number("samples_per_second");
      if (speed) own.push_back({worker.rank, part.number, 0, 0, part.at(one.seconds), *speed});
    }
  }
  return thinned(std::move(own));
}

}  // namespace

json throughput(const Run& run) {
  json rows = json::array();
  for (const auto& [rank, worker] : run.workers) {
    for (const Point& point : speeds(worker)) rows.push_back(row_of(point, "speed"));
  }
  return rows;
}

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
  for (const char* each : {"mix-every", "mix-times"}) {
    if (!is_number(of(run, each, "1"), 1)) return "Workers do not average once after each step.";
  }
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
  std::ranges::copy_if(means, std::back_inserter(positive),
                       [](const Point& point) { return point.value > 0; });
  json rows = json::array();
  const auto smaller = [](const Point& a, const Point& b) { return a.value < b.value; };
  const auto [floor, top] = std::ranges::minmax_element(positive, smaller);
  if (positive.empty() || floor->value == top->value) return rows;
  const double falls = gap < 1 ? std::log(floor->value / top->value) / std::log1p(-gap) : 1;
  rows.push_back({{"rounds", top->rounds}, {"value", top->value}});
  rows.push_back({{"rounds", top->rounds + falls}, {"value", floor->value}});
  const double last = positive.back().rounds;
  if (top->rounds + falls < last) rows.push_back({{"rounds", last}, {"value", floor->value}});
  return rows;
}

}  // namespace fast_report
