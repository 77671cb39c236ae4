#include "data/files/origins.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <limits>

#include "core/message.hpp"

namespace fast::data {
namespace {

/// With so many steps, the rounding of a value is below a thousandth of the standard deviation.
constexpr double fewest_steps = 4096;
/// Below that, values cannot be told apart.
constexpr double fewest_steps_at_all = 256;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool are_floats = true;  ///< no value changes when it becomes a float

  void add(double value) {
    if (std::isnan(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
    are_floats = are_floats && static_cast<double>(static_cast<float>(value)) == value;
  }
  double width() const { return high - low; }
};

std::vector<Range> ranges_of(std::span<const double> values, const ChannelForm& form) {
  std::vector<Range> ranges(form.channels);
  for (std::size_t at = 0; at < values.size();) {
    for (Range& range : ranges) {
      for (std::size_t i = 0; i < form.plane; ++i) range.add(values[at++]);
    }
  }
  return ranges;
}

/// The distance of neighboring numbers of that type.
template <class T>
double step_at(double value) {
  const auto number = static_cast<T>(std::abs(value));
  return std::nextafter(number, std::numeric_limits<T>::infinity()) - number;
}

template <class T>
double steps_of(const Range& range) {
  return range.width() / step_at<T>(std::max(std::abs(range.low), std::abs(range.high)));
}

void check_range(const Range& range, const std::string& name) {
  constexpr double smallest = 100 * std::numeric_limits<float>::min();
  require(range.width() >= smallest, ErrorKind::data,
          "{} has values from {} to {}; 32-bit floats need differences of {} at least. Multiply "
          "its values by a constant, or leave it out",
          name, range.low, range.high, smallest);
  require(steps_of<double>(range) >= fewest_steps_at_all, ErrorKind::data,
          "{} has values from {} to {}; 64-bit floats have steps of {} there. Subtract a constant "
          "from its values, or leave it out",
          name, range.low, range.high, step_at<double>(range.high));
}

double origin_of(const Range& range) {
  return !range.are_floats && steps_of<float>(range) < fewest_steps ? range.low : 0;
}

}  // namespace

std::vector<double> origins_of(std::span<const double> values, const ChannelForm& form) {
  std::vector<double> origins;
  for (const Range& range : ranges_of(values, form)) {
    const bool varies = range.low < range.high && std::isfinite(range.width());
    if (varies) check_range(range, form.name(origins.size()));
    origins.push_back(varies ? origin_of(range) : 0);
  }
  const bool has_any =
      std::any_of(origins.begin(), origins.end(), [](double origin) { return origin != 0; });
  return has_any ? origins : std::vector<double>();
}

std::vector<float> less_origins(std::span<const double> values, const std::vector<double>& origins,
                                const ChannelForm& form) {
  std::vector<float> floats(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double origin = origins.empty() ? 0 : origins[i / form.plane % form.channels];
    floats[i] = static_cast<float>(values[i] - origin);
  }
  return floats;
}

void check_targets_as_floats(std::span<const double> targets, const std::string& name) {
  Range range;
  for (const double target : targets) range.add(target);
  const bool varies = range.low < range.high && !range.are_floats;
  require(!varies || steps_of<float>(range) >= fewest_steps_at_all, ErrorKind::data,
          "{} has values from {} to {} to be predicted; 32-bit floats have steps of {} there. "
          "Subtract a constant from its values",
          name, range.low, range.high, step_at<float>(range.high));
}

std::vector<std::string> origin_notes(const std::vector<double>& origins, const ChannelForm& form) {
  std::vector<std::string> notes;
  for (std::size_t c = 0; c < origins.size(); ++c) {
    if (origins[c] == 0) continue;
    notes.push_back(
        fmt::format("{}: values are stored less {}, where 32-bit floats have steps of {}; an "
                    "exported model takes 64-bit inputs",
                    form.name(c), origins[c], step_at<float>(origins[c])));
  }
  return notes;
}

void refuse_origins(const Splits& splits, std::string_view from, std::string_view target) {
  const std::vector<double>& origins = splits.normalization.origins;
  const auto found =
      std::find_if(origins.begin(), origins.end(), [](double origin) { return origin != 0; });
  if (found == origins.end()) return;
  const auto channel = static_cast<std::size_t>(found - origins.begin());
  fail(ErrorKind::data,
       "data: {}: feature {} has values near {} with small differences, which the 32-bit floats of "
       "{} cannot tell apart; subtract {} from its values, or name the --features without it",
       printable(from),
       channel < splits.features.size() ? printable(splits.features[channel])
                                        : fmt::format("{}", channel + 1),
       *found, target, *found);
}

}  // namespace fast::data
