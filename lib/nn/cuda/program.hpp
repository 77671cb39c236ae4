// The pass of a model over a batch as a list of works. The host builds the list from the layers.
// Libraries and kernels of CUDA run it, or plain loops in a test.
#pragma once

#include <fast/nn/cuda/network.hpp>
#include <fast/nn/model_spec.hpp>
#include <functional>
#include <vector>

#include "nn/cuda/works.hpp"

namespace fast::cuda {

/// The flat vectors of a model, in nn's order and layout.
struct ModelMemory {
  const float* parameters;
  float *gradients, *buffers;
  const float* class_weights = nullptr;  ///< of the loss, if it has any
};

/// The works and their ends. The caller writes the inputs of a Batch to `inputs`, and the labels to
/// `labels` or the targets to `targets`. In training with labels it also writes `share`, and below
/// 1 the second labels to `mixed`, as Batch has them. The works write `losses`, one for each label
/// or target, and `hits`, one for each label. In training they also write the gradients and the
/// updated buffers. In evaluation they write the outputs of the model, unless the task has no
/// measures.
struct Program {
  Index samples, losses_count;
  float* inputs;
  std::int32_t *labels, *mixed;
  float *targets, *share;
  const float* losses;
  const std::int32_t* hits;
  const float* outputs;  ///< may be null
  std::vector<Work> works;
};

/// Labels or targets of that many samples.
Index losses_of(const nn::ModelSpec& spec, Index samples);

/// Allocates memory that exists as long as the program.
using Allocate = std::function<std::byte*(std::size_t size_bytes)>;

/// Values between layers are bf16 with Precision::bf16, and f32 otherwise. Throws Error(argument)
/// as nn::shapes() does, and for layers without a part for GPUs.
Program build_program(const nn::ModelSpec& spec, Index samples, bool training, Precision precision,
                      const ModelMemory& model, const Allocate& allocate);

}  // namespace fast::cuda
