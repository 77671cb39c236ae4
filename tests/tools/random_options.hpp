// Random values of options.
#pragma once

#include <fast/core/random.hpp>

#include <string>
#include <vector>

#include "options/option_table.hpp"

namespace fast::testing {

inline std::string random_text(Rng& rng) {
  static const std::vector<std::string> pieces = {
      "a", "run", "7", " ", "\"", "\\", "'", "\n", "\t", "#", "=", "[x]", "é", "→", "🙂", "\x01"};
  std::string text;
  for (std::uint64_t length = rng.below(8); length > 0; --length) {
    text += pieces[rng.below(pieces.size())];
  }
  return text;
}

/// A value that the row allows.
inline std::vector<std::string> random_values(const options::OptionSpec& row, Rng& rng) {
  using options::Kind;
  if (!row.names.empty()) return {row.names[rng.below(row.names.size())]};
  std::vector<std::string> candidates;
  switch (row.kind) {
    case Kind::flag:
      return {rng.below(2) == 0 ? "true" : "false"};
    case Kind::integer:
      candidates = {std::to_string(rng()), std::to_string(1 + rng.below(1000))};
      break;
    case Kind::number:
      candidates = {fmt::format("{}", rng.uniform()), fmt::format("{}", rng.uniform(1, 1e6))};
      break;
    case Kind::mixed_number:
      candidates = {"auto", fmt::format("{}", rng.uniform()), fmt::format("{}", rng.below(1000))};
      break;
    case Kind::list:
      for (std::uint64_t count = rng.below(4); count > 0; --count) {
        candidates.push_back(random_text(rng));
      }
      return candidates;
    default:
      candidates = {"inf",  "auto", "90s", std::to_string(rng.below(1000)), "dirichlet:0.25",
                    "even", "2:4"};
      if (row.kind == Kind::text) candidates.push_back(random_text(rng));
  }
  return {candidates[rng.below(candidates.size())]};
}

/// Gives a row a random value, or leaves it when the value was not allowed.
inline void set_at_random(options::OptionTable& table, options::OptionSpec& row, Rng& rng) {
  for (int tries = 0; tries < 20; ++tries) {
    const auto values = random_values(row, rng);
    if (row.read(values) != options::Fit::good) continue;
    table.set(row, values, "at random");
    return;
  }
}

}  // namespace fast::testing
