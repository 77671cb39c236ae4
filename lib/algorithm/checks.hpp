// What options of several rules have to be.
#pragma once

#include <fast/core/error.hpp>

namespace fast::algorithm {

/// Decays and momenta: in [0, 1).
inline void require_decay(std::string_view rule, std::string_view option, double value) {
  require(value >= 0 && value < 1, ErrorKind::argument,
          "{}: {} {}; it must be at least 0 and below 1", rule, option, value);
}

}  // namespace fast::algorithm
