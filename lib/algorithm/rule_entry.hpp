// The registry of rules: each has a row at the end of its file, and its name here and in names.cpp.
#pragma once

#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/contains.hpp"
#include "core/registry.hpp"
#include "core/text.hpp"

namespace fast::algorithm {

// What options of several rules have to be.

/// Decays and momenta: in [0, 1).
inline void require_decay(std::string_view rule, std::string_view option, double value) {
  require(value >= 0 && value < 1, ErrorKind::argument,
          "{}: {} {}; it must be at least 0 and below 1", rule, option, value);
}

inline constexpr std::string_view why_weights_exact =
    "coded weights do not converge; set changes=true, and it sends changes, which may be coded";

/// Of all outer rules. `interval`: steps from one combination to the next.
template <class Options>
void require_outer(std::string_view rule, const Options& options, std::int64_t interval) {
  require(options.period >= 1, ErrorKind::argument, "{}: period {}; it must be 1 or more", rule,
          options.period);
  require(options.rate > 0, ErrorKind::argument, "{}: rate {}; it must be above 0", rule,
          options.rate);
  require(options.blend >= 0 && options.blend < 1, ErrorKind::argument,
          "{}: blend {}; it must be at least 0 and below 1", rule, options.blend);
  require(options.delay >= 0 && options.delay < interval, ErrorKind::argument,
          "{}: delay {}; it must be at least 0 and below {}, the steps between two exchanges", rule,
          options.delay, interval);
}

/// Reads a rule's options from texts.
class ParameterReader {
 public:
  ParameterReader(std::string_view rule, const Parameters& given) : rule_(rule), given_(given) {}

  /// Leaves `value` when none was given.
  template <class T>
  void read(std::string_view key, T& value) {
    known_.push_back(key);
    const auto found = given_.find(key);
    if (found != given_.end()) parse(found->first, found->second, value);
  }

  void require_all_known() const {
    for (const auto& [key, value] : given_) {
      if (contains(known_, key)) continue;
      require(!known_.empty(), ErrorKind::argument,
              "algorithm {}: option \"{}\" is unknown; the rule has none", rule_, key);
      fail(ErrorKind::argument, "algorithm {}: option \"{}\" is unknown; choose from {}{}", rule_,
           key, fmt::join(known_, ", "), did_you_mean(key, known_));
    }
  }

 private:
  template <class T>
  void parse(std::string_view key, const std::string& text, T& value) const {
    require(reads(text, value), ErrorKind::argument, "algorithm {}: {}={}; a number is required",
            rule_, key, text);
    if constexpr (std::is_floating_point_v<T>)
      require(std::isfinite(value), ErrorKind::argument,
              "algorithm {}: {}={}; a finite number is required", rule_, key, text);
  }
  void parse(std::string_view key, const std::string& text, bool& value) const {
    require(text == "true" || text == "false", ErrorKind::argument,
            "algorithm {}: {}={}; true or false is required", rule_, key, text);
    value = text == "true";
  }
  template <class T>
  void parse(std::string_view key, const std::string& text, std::optional<T>& value) const {
    if (text == "adaptive") {
      value.reset();
    } else {
      parse(key, text, value.emplace());
    }
  }

  std::string_view rule_;
  const Parameters& given_;
  std::vector<std::string_view> known_;
};

struct RuleEntry {
  /// Reads the rule's options by their names. Throws Error(argument) on values out of range.
  Rule (*make)(ParameterReader& reader);
};

namespace entries {
extern const RuleEntry none, awc, atc, local, gossip_pga, gradient_tracking, d2, edm, gut,
    quasi_global_momentum, averaged_momentum, decentlam, relay_sum, choco, push_sum,
    event_triggered, pairwise, a2cid2, diloco, noloco, gasloc, awc_gasloc, sparta, allreduce,
    gradient_exchange;
}  // namespace entries

}  // namespace fast::algorithm
