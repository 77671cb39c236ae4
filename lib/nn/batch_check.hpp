// Requirements on a batch for a model, on any device.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/nn/model_spec.hpp>

namespace fast::nn {

/// Throws Error(argument) if the shape, the sizes or the labels do not fit.
void require_fit(const Batch& batch, const ModelSpec& spec, std::int64_t classes);

}  // namespace fast::nn
