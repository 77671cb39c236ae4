#include "staleness.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fast/core/error.hpp>
#include <fast/exchange/exchange.hpp>

namespace tools {

using namespace fast;

std::int64_t staleness_of(const std::string& text) {
  if (text == "inf") return unbounded_staleness;
  std::int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  require(error == std::errc() && stop == end && value >= 0, ErrorKind::argument,
          "--staleness: \"{}\" is no whole number from 0 on and not inf", text);
  return value;
}

std::string staleness_text(std::int64_t staleness) {
  return staleness == unbounded_staleness ? "inf" : fmt::format("{}", staleness);
}

}  // namespace tools
