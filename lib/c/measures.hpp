// What a caller's evaluate_task() measures.
#pragma once

#include <fast/core/measure.hpp>

#include "c/handles.hpp"

struct fast_measures {
  std::vector<fast::Measure> measures;
};

namespace fast::c {

/// Without measures, the mean loss.
std::vector<Measure> measures_or_loss(fast_measures found, double loss_sum, std::size_t samples);

}  // namespace fast::c
