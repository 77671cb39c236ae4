// Checks of what a network is given: the processor, a batch, the options of a backend.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/nn/backend.hpp>
#include <fast/nn/model_spec.hpp>

namespace fast::nn {

// Checks that this processor can run the kernels.

bool processor_fits() noexcept;

/// Throws Error(resource) unless `fits`. To be called before the first kernel runs.
void require_processor(bool fits);

// Requirements on a batch for a model, on any device.

/// Throws Error(argument) if the shape, the sizes, the labels or the targets do not fit. `output`
/// is the model's, of one sample.
void require_fit(const Batch& batch, const ModelSpec& spec, const Shape& output);
/// The same of labels and targets alone.
void require_answers(const Batch& batch, const ModelSpec& spec, const Shape& output);

// Checks that all backends for models of nn have in common.

/// Throws Error(argument) on options out of range. Does not check the options of the optimizer.
void require_valid(const BackendOptions& options);

/// Throws Error(argument) if the last layer is what the loss applies to the outputs itself: softmax
/// or sigmoid.
void require_logits(const ModelSpec& spec);

}  // namespace fast::nn
