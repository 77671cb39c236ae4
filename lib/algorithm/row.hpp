// The registry of rules: each has a row at the end of its file, whose name CMakeLists.txt lists.
#pragma once

#include "algorithm/parameters.hpp"

namespace fast::algorithm {

struct Row {
  /// Reads the rule's options by their names. Throws Error(argument) on values out of range.
  Rule (*make)(ParameterReader& reader);
};

namespace rows {
#define FAST_ROW(name) extern const Row name;
#include "algorithm/rows.inc"
#undef FAST_ROW
}  // namespace rows

}  // namespace fast::algorithm
