// Requirements on a batch for a model, on any device.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/nn/model_spec.hpp>

namespace fast::nn {

/// Throws Error(argument) if the shape, the sizes, the labels or the targets do not fit. `output`
/// is the model's, of one sample.
void require_fit(const Batch& batch, const ModelSpec& spec, const Shape& output);
/// The same of labels and targets alone.
void require_answers(const Batch& batch, const ModelSpec& spec, const Shape& output);

}  // namespace fast::nn
