// What options of several rules have to be.
#pragma once

#include <fast/core/error.hpp>

namespace fast::algorithm {

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

}  // namespace fast::algorithm
