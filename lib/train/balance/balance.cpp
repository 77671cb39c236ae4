#include <fast/train/balance.hpp>

#include <fmt/ranges.h>

#include <cmath>
#include <fast/core/error.hpp>

#include "core/text.hpp"

namespace fast::train {
namespace {

/// Empty if some part is not a positive number.
std::vector<double> read_speeds(std::string_view text) {
  std::vector<double> speeds;
  for (const std::string_view part : split_text(text, ',')) {
    double speed = 0;
    const bool good = reads(part, speed);
    if (!good || !std::isfinite(speed) || speed <= 0) return {};
    speeds.push_back(speed);
  }
  return speeds;
}

}  // namespace

std::string Balance::text() const {
  if (kind == Kind::even) return "even";
  if (kind == Kind::measured) return "measured";
  return fmt::format("{}", fmt::join(speeds, ","));
}

Balance balance_from(std::string_view text) {
  if (text == "even") return {};
  if (text == "measured") return {Balance::Kind::measured, {}};
  std::vector<double> speeds = read_speeds(text);
  require(!speeds.empty(), ErrorKind::argument,
          "balance: \"{}\"; choose even, measured or a positive number for each worker (1,2,4)",
          text);
  return {Balance::Kind::given, std::move(speeds)};
}

}  // namespace fast::train
