#include "fast_report/time_use.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "core/contains.hpp"

namespace fast_report {

namespace {

/// The round that was resumed from, and how often a worker had done so before.
using Key = std::pair<std::int64_t, int>;
using Parts = std::vector<Part*>;

/// Runs of older versions have the rounds that each worker had made.
std::int64_t resumed_from(const Part& part) {
  const auto round = part.start.integer("resumed_from");
  return round ? *round : part.start.integer("resumed_step").value_or(0);
}

std::map<Key, Parts> together(std::map<int, Worker>& workers) {
  std::map<Key, Parts> parts;
  for (auto& [rank, worker] : workers) {
    std::map<std::int64_t, int> before;
    for (Part& part : worker.parts) {
      const std::int64_t round = resumed_from(part);
      parts[{round, before[round]++}].push_back(&part);
    }
  }
  return parts;
}

/// On the clock of worker 0 where the run has measured the difference. 0: unknown.
double began_at(const Part& part) {
  return part.began_at == 0 ? 0 : part.began_at - part.start.number("clock_offset").value_or(0);
}

double median_begin(const Parts& parts) {
  std::vector<double> begins;
  for (const Part* part : parts) {
    if (part->began_at != 0) begins.push_back(began_at(*part));
  }
  if (begins.empty()) return 0;
  const auto middle = begins.begin() + static_cast<std::ptrdiff_t>((begins.size() - 1) / 2);
  std::nth_element(begins.begin(), middle, begins.end());
  return *middle;
}

double longest(const Parts& parts) {
  double longest_s = 0;
  for (const Part* part : parts) longest_s = std::max(longest_s, part->last_s);
  return longest_s;
}

/// How much later than the others it began.
double delay(const Part& part, double median, double limit_s) {
  if (part.began_at == 0 || median == 0) return 0;
  const double late = began_at(part) - median;
  const bool is_measured = part.start.number("clock_offset").has_value();
  return is_measured || std::abs(late) <= limit_s ? late : 0;
}

/// Returns where the part ends on the time axis.
double place(const Parts& parts, int number, double from_s) {
  const double median = median_begin(parts), limit_s = longest(parts);
  double first = 0;
  for (const Part* part : parts) first = std::min(first, delay(*part, median, limit_s));
  double end_s = from_s;
  for (Part* part : parts) {
    part->number = number;
    part->offset_s = from_s + delay(*part, median, limit_s) - first;
    end_s = std::max(end_s, part->at(part->last_s));
  }
  return end_s;
}

}  // namespace

void align(std::map<int, Worker>& workers) {
  const std::map<Key, Parts> groups = together(workers);
  std::vector<const Parts*> in_time;
  for (const auto& [key, parts] : groups) in_time.push_back(&parts);
  std::ranges::stable_sort(
      in_time, [](const Parts* a, const Parts* b) { return median_begin(*a) < median_begin(*b); });
  double from_s = 0;
  int number = 0;
  for (const Parts* parts : in_time) from_s = place(*parts, number++, from_s);
}

int parts_of(const std::map<int, Worker>& workers) {
  int most = 0;
  for (const auto& [rank, worker] : workers) {
    for (const Part& part : worker.parts) most = std::max(most, part.number + 1);
  }
  return most;
}

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
    if (!fast::contains(phases, phase)) phases.push_back(phase);
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

using nlohmann::json;

namespace {

/// What a worker did between two lines.
struct Cell {
  double from_s = 0, to_s = 0;
  TimeSpent spent;
};

bool has_intervals(const Run& run) {
  for (const auto& [rank, worker] : run.workers) {
    for (const Part& part : worker.parts) {
      if (part.intervals.size() > 2) return true;
    }
  }
  return false;
}

std::vector<Cell> cells_of(const Worker& worker, bool intervals) {
  std::vector<Cell> cells;
  for (const Part& part : worker.parts) {
    double from_s = 0;
    for (const Measurement& one : intervals ? part.intervals : part.epochs) {
      if (one.seconds > from_s) {
        cells.push_back({part.at(from_s), part.at(one.seconds), one.spent});
      }
      from_s = std::max(from_s, one.seconds);
    }
  }
  return cells;
}

std::vector<Cell> joined(const std::vector<Cell>& cells) {
  const std::size_t together = (cells.size() + most_cells - 1) / most_cells;
  std::vector<Cell> joined;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i % together == 0) joined.push_back(Cell{cells[i].from_s, 0, {}});
    joined.back().to_s = cells[i].to_s;
    joined.back().spent.add(cells[i].spent);
  }
  return joined;
}

json longest_wait(const TimeSpent& spent) {
  const auto longest =
      std::ranges::max_element(spent.waits_s, {}, [](const auto& one) { return one.second; });
  if (longest == spent.waits_s.end() || longest->second <= 0) return "nobody";
  return fmt::format("worker {} ({:.2f} s)", longest->first, longest->second);
}

}  // namespace

json waiting_over_time(const Run& run) {
  const bool intervals = has_intervals(run);
  json rows = json::array();
  for (const auto& [rank, worker] : run.workers) {
    for (const Cell& cell : joined(cells_of(worker, intervals))) {
      rows.push_back({{"worker", rank},
                      {"from", cell.from_s},
                      {"to", cell.to_s},
                      {"share", cell.spent.wait_share()},
                      {"waited_s", cell.spent.phase("wait")},
                      {"peer", longest_wait(cell.spent)}});
    }
  }
  return rows;
}

json anatomy(const Run& run) {
  const auto spent = totals(run);
  const std::vector<std::string> phases = phases_in_order(sum(spent));
  json rows = json::array();
  for (const auto& [rank, own] : spent) {
    if (own.seconds() <= 0) continue;
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const double seconds = own.phase(phases[i]);
      rows.push_back({{"worker", rank},
                      {"phase", phases[i]},
                      {"order", i},
                      {"share", seconds / own.seconds()},
                      {"seconds", seconds}});
    }
  }
  return rows;
}

namespace {

/// Of one worker and one name in a row of the chart.
constexpr double most_marks = 150;

/// An event of one worker, as several may have seen it.
struct Seen {
  int worker = 0;
  double seconds = 0;
  const Event* event = nullptr;
  std::set<int> by;
  int count = 1;
};

bool is_same(const Seen& a, const Seen& b, double at_once_s) {
  return a.worker == b.worker && a.event->name == b.event->name &&
         b.seconds - a.seconds <= at_once_s;
}

std::vector<Seen> all_events(const Run& run) {
  std::vector<Seen> all;
  for (const auto& [rank, worker] : run.workers) {
    for (const Part& part : worker.parts) {
      for (const Event& event : part.events) {
        all.push_back({event.about.value_or(rank), part.at(event.seconds), &event, {rank}, 1});
      }
    }
  }
  std::ranges::stable_sort(all, [](const Seen& a, const Seen& b) {
    return std::tie(a.worker, a.event->name, a.seconds) <
           std::tie(b.worker, b.event->name, b.seconds);
  });
  return all;
}

json row_of(const Seen& seen) {
  json row = {
      {"worker", seen.worker},     {"seconds", seen.seconds},
      {"event", seen.event->name}, {"count", seen.count},
      {"text", seen.event->text},  {"seen_by", fmt::format("{}", fmt::join(seen.by, ", "))}};
  if (seen.event->step) row["step"] = *seen.event->step;
  return row;
}

}  // namespace

json events_over_time(const Run& run) {
  const double at_once_s = std::max(1.0, last_second(run) / most_marks);
  std::vector<Seen> joined;
  for (Seen& seen : all_events(run)) {
    if (!joined.empty() && is_same(joined.back(), seen, at_once_s)) {
      joined.back().by.insert(seen.by.begin(), seen.by.end());
      ++joined.back().count;
    } else {
      joined.push_back(std::move(seen));
    }
  }
  json rows = json::array();
  for (const Seen& seen : joined) rows.push_back(row_of(seen));
  return rows;
}

double last_second(const Run& run) {
  double last_s = 0;
  for (const auto& [rank, worker] : run.workers) {
    for (const Part& part : worker.parts) last_s = std::max(last_s, part.at(part.last_s));
  }
  return last_s;
}

}  // namespace fast_report
