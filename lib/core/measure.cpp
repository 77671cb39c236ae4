#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/measure.hpp>

namespace fast {
namespace {

constexpr double bins_of_one = 64, lowest_score = -32;

/// Samples of class 1 above each of class 0; of those in the same bin, half.
double area_under(const std::vector<double>& counts) {
  const std::size_t bins = counts.size() / 2;
  double below = 0, pairs = 0, ones = 0;
  for (std::size_t b = 0; b < bins; ++b) {
    const double zero = counts[b], one = counts[bins + b];
    pairs += one * (below + zero / 2);
    below += zero;
    ones += one;
  }
  return pairs / (below * ones);
}

bool is_of_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

double Measure::value() const {
  if (form == Form::area) return area_under(sums);
  const double mean = sums.at(0) / sums.at(1);
  if (form == Form::root_of_mean) return std::sqrt(mean);
  return form == Form::exp_of_mean ? std::exp(mean) : mean;
}

void Measure::add(const Measure& other) {
  require(name == other.name, ErrorKind::mismatch,
          "measures: \"{}\" and \"{}\" do not add up; their names must be equal", name, other.name);
  require(form == other.form && sums.size() == other.sums.size(), ErrorKind::mismatch,
          "measures: two forms of \"{}\" do not add up; give each form a name of its own", name);
  std::ranges::transform(sums, other.sums, sums.begin(), std::plus<>());
}

std::size_t score_bin(double score) {
  const double bin = std::floor((score - lowest_score) * bins_of_one);
  return static_cast<std::size_t>(std::clamp(bin, 0.0, static_cast<double>(score_bins - 1)));
}

Measure empty_area(std::string_view name) {
  return {std::string(name), Measure::Form::area, std::vector<double>(2 * score_bins)};
}

void add(std::vector<Measure>& to, const std::vector<Measure>& from) {
  for (const Measure& measure : from) {
    const auto same = std::ranges::find(to, measure.name, &Measure::name);
    if (same == to.end()) {
      to.push_back(measure);
    } else {
      same->add(measure);
    }
  }
}

void require_valid(const std::vector<Measure>& measures) {
  for (auto measure = measures.begin(); measure != measures.end(); ++measure) {
    const std::string& name = measure->name;
    require(!name.empty() && name != "loss" && name != "samples" &&
                std::ranges::all_of(name, is_of_names),
            ErrorKind::argument,
            "measures: the name \"{}\"; letters, digits and _ are required, and not \"loss\" or "
            "\"samples\"",
            name);
    const auto is_again = [&](const Measure& other) { return other.name == name; };
    require(std::none_of(measures.begin(), measure, is_again), ErrorKind::argument,
            "measures: there are two of the name \"{}\"; give each a name of its own", name);
    const std::size_t sums = measure->form == Measure::Form::area ? 2 * score_bins : 2;
    require(measure->sums.size() == sums, ErrorKind::argument,
            "measures: \"{}\" has {} sums; its form requires {}", name, measure->sums.size(), sums);
  }
}

std::vector<std::pair<std::string, double>> values_of(const std::vector<Measure>& measures) {
  std::vector<std::pair<std::string, double>> values;
  for (const Measure& measure : measures) values.emplace_back(measure.name, measure.value());
  return values;
}

std::string measure_text(Measure::Form form, double value) {
  return form == Measure::Form::share ? fmt::format("{:.2f} %", 100 * value)
                                      : fmt::format("{:.4g}", value);
}

}  // namespace fast
