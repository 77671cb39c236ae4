// A model's pass over a batch as a list of works: built on the host from what nn's layers say of
// themselves, carried out by whatever can (CUDA's libraries and kernels, or a test's plain loops).
#pragma once

#include <fast/cuda/network.hpp>
#include <fast/nn/model_spec.hpp>
#include <functional>
#include <vector>

#include "cuda/network/works.hpp"

namespace fast::cuda {

/// Where a model's flat vectors lie, in nn's order and layout.
struct ModelMemory {
  const float* parameters;
  float *gradients, *buffers;
};

/// To be given a batch at `inputs`, as it is in a Batch, and `labels`; leaves losses and hits. In
/// training also the gradients, and the buffers moved.
struct Program {
  Index samples;
  float* inputs;
  std::int32_t* labels;
  const float* losses;
  const std::int32_t* hits;
  std::vector<Work> works;
};

/// Memory that stays as long as the program is used.
using Allocate = std::function<std::byte*(std::size_t size_bytes)>;

/// Values between layers are bf16 with Precision::bf16, else f32. Throws Error(argument) as
/// nn::shapes() does.
Program build_program(const nn::ModelSpec& spec, Index samples, bool training, Precision precision,
                      const ModelMemory& model, const Allocate& allocate);

}  // namespace fast::cuda
