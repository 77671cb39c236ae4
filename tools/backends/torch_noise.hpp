// The choice of nn's dropout on LibTorch: the same values are dropped.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "nn/layers/dropout.hpp"
#include "nn/noise.hpp"

namespace backends {

/// Elements first, first + stride, ... of a tensor. Others are not copied from its device.
template <class T>
std::vector<T> every(const at::Tensor& tensor, std::size_t first, std::size_t stride) {
  const auto begin = static_cast<std::int64_t>(first), step = static_cast<std::int64_t>(stride);
  const at::Tensor taken =
      tensor.detach().flatten().slice(0, begin, c10::nullopt, step).cpu().contiguous();
  return {taken.data_ptr<T>(), taken.data_ptr<T>() + taken.numel()};
}

/// As nn::noise_of_model(), of tensors one after the other.
template <class T>
std::uint64_t noise_of_parameters(const std::vector<at::Tensor>& parameters) {
  std::size_t count = 0, next = 0, first = 0;
  for (const at::Tensor& tensor : parameters) count += static_cast<std::size_t>(tensor.numel());
  const std::size_t stride = fast::nn::noise_stride(count);
  std::uint64_t noise = 0;
  for (const at::Tensor& tensor : parameters) {
    const std::size_t end = first + static_cast<std::size_t>(tensor.numel());
    const std::vector<T> chosen =
        next < end ? every<T>(tensor, next - first, stride) : std::vector<T>{};
    for (const T value : chosen) noise = fast::mixed_seed(noise, fast::nn::bits_of(value), 0);
    next += chosen.size() * stride;
    first = end;
  }
  return noise;
}

/// One number for each sample of the inputs, which have been made of floats.
inline std::vector<std::uint64_t> noise_of_samples(std::uint64_t of_model,
                                                   const at::Tensor& inputs) {
  const at::Tensor values = inputs.detach().cpu().to(at::kFloat).contiguous();
  const auto samples = static_cast<std::size_t>(values.size(0));
  const std::size_t size = static_cast<std::size_t>(values.numel()) / samples;
  std::vector<std::uint64_t> noise;
  for (std::size_t s = 0; s < samples; ++s)
    noise.push_back(fast::nn::noise_of_sample(of_model, values.data_ptr<float>() + s * size, size));
  return noise;
}

/// What the values of a batch are multiplied by in a layer at `place`.
inline at::Tensor dropout_factors(const at::Tensor& values, const fast::nn::DropoutMask& mask,
                                  const std::vector<std::uint64_t>& noise, std::int64_t place) {
  const at::Tensor factors = at::empty(values.sizes(), at::kDouble);
  auto* to = factors.data_ptr<double>();
  const std::int64_t size = values.numel() / values.size(0);
  for (const std::uint64_t of_sample : noise) {
    const std::uint64_t seed = fast::nn::DropoutMask::seed(of_sample, place);
    for (std::int64_t e = 0; e < size; ++e) *to++ = mask.masked(1.0, seed, e);
  }
  return factors.to(values.device(), values.scalar_type());
}

}  // namespace backends
