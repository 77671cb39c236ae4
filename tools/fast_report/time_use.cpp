#include "fast_report/time_use.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "fast_report/totals.hpp"

namespace fast_report {

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
      std::max_element(spent.waits_s.begin(), spent.waits_s.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
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
  std::stable_sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
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
