// Numbers as people read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fast_report {

/// "61,706"
std::string grouped(std::int64_t number);
/// "89.1 %" of 0.891.
std::string percent(double share);
/// "0.42 s", "11.3 s", "4 min 5 s", "3 h 12 min"
std::string duration(double seconds);
/// Four significant digits.
std::string short_number(double number);

std::string percent(const std::optional<double>& share);
std::string short_number(const std::optional<double>& number);

/// "1 worker", "2 workers"
std::string counted(std::int64_t number, const std::string& noun);

}  // namespace fast_report
