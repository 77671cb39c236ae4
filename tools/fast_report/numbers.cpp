#include "fast_report/numbers.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/saturate.hpp"

namespace fast_report {

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string percent(double share) {
  const double value = 100 * share;
  return fmt::format("{:.{}f} %", value, std::abs(value) < 10 ? 2 : 1);
}

std::string duration(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.{}f} s", seconds, seconds < 9.995 ? 2 : 1);
  const auto whole = fast::saturate<std::int64_t>(std::round(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string short_number(double number) {
  if (std::abs(number) >= 1e4 && std::abs(number) < 1e15) {
    return grouped(static_cast<std::int64_t>(std::llround(number)));
  }
  return fmt::format("{:.4g}", number);
}

std::string percent(const std::optional<double>& share) { return share ? percent(*share) : "–"; }

std::string short_number(const std::optional<double>& number) {
  return number ? short_number(*number) : "–";
}

std::string counted(std::int64_t number, const std::string& noun) {
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

}  // namespace fast_report
