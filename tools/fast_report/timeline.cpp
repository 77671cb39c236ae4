#include "fast_report/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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
  std::stable_sort(in_time.begin(), in_time.end(), [](const Parts* a, const Parts* b) {
    return median_begin(*a) < median_begin(*b);
  });
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

}  // namespace fast_report
