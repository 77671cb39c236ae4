// What a caller's evaluate_task() measures.
#pragma once

#include <fast/core/measure.hpp>

#include <exception>
#include <vector>

#include "c/handles.hpp"

struct fast_measures {
  std::vector<fast::Measure> measures;
  std::exception_ptr refused;  ///< of the first that was refused
};
