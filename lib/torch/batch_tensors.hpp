// A part of a batch as LibTorch's tensors: samples `first` to `first + count`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <fast/core/batch.hpp>
#include <vector>

namespace fast::torch {

/// Inputs [count x sample shape] of the type and on the device of `like`. `sample_shape`: empty for
/// the shape of the batch. Throws Error(argument) for an empty batch and for values that do not
/// have this shape.
at::Tensor inputs_of(const Batch& batch, std::size_t first, std::size_t count,
                     const std::vector<std::int64_t>& sample_shape, const at::Tensor& like);

/// Class labels in a row, on the device of the logits [labels x classes]. Throws Error(argument)
/// for float targets, logits of another shape and labels that are no class.
at::Tensor labels_of(const Batch& batch, std::size_t first, std::size_t count,
                     const at::Tensor& logits);

/// Float targets in the shape and type of the outputs. `binary`: from 0 to 1, labels serve, too.
/// Throws Error(argument) for other targets, and for another number of outputs than targets.
at::Tensor targets_of(const Batch& batch, std::size_t first, std::size_t count,
                      const at::Tensor& outputs, bool binary);

/// What a sample has, unchanged: labels, or targets of the outputs' type, on their device.
at::Tensor as_given(const Batch& batch, std::size_t first, std::size_t count,
                    const at::Tensor& outputs);

}  // namespace fast::torch
