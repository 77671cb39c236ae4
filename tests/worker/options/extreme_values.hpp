// Texts of numbers that options do not expect: zero, the ends of integers and doubles, no numbers.
#pragma once

#include <string>
#include <vector>

#include "options/option_table.hpp"

namespace fast::testing {

inline std::vector<std::string> extreme_integers() {
  return {"0",
          "-1",
          "1",
          "2147483647",
          "2147483648",
          "1099511627776",
          "4611686018427387904",
          "9223372036854775806",
          "9223372036854775807",
          "9223372036854775808",
          "18446744073709551615",
          "18446744073709551616",
          "-9223372036854775808"};
}

inline std::vector<std::string> extreme_numbers() {
  return {"0",
          "-0",
          "-1",
          "5e-324",
          "1e-300",
          "1e-9",
          "0.9999999999999999",
          "1e9",
          "1e18",
          "1e19",
          "1e300",
          "1.7976931348623157e308",
          "1e309",
          "inf",
          "-inf",
          "nan"};
}

/// None for a row whose values are names or texts.
inline std::vector<std::string> extremes_of(const options::OptionSpec& row) {
  using options::Kind;
  if (!row.names.empty()) return {};
  if (row.kind == Kind::integer || row.kind == Kind::mixed) return extreme_integers();
  if (row.kind == Kind::number || row.kind == Kind::mixed_number) return extreme_numbers();
  return {};
}

}  // namespace fast::testing
