#include "torch/batch_tensors.hpp"

#include <ATen/ATen.h>

#include <fast/core/error.hpp>

namespace fast::torch {

at::Tensor inputs_of(const Batch& batch, std::size_t first, std::size_t count,
                     const std::vector<std::int64_t>& sample_shape, const at::Tensor& like) {
  std::int64_t values = 1;
  for (const std::int64_t side : batch.sample_shape) values *= side;
  require(count > 0, ErrorKind::argument, "torch: the batch is empty");
  require(batch.inputs.size() == batch.count() * static_cast<std::size_t>(values),
          ErrorKind::argument, "torch: {} input values given, {} samples of {} are {}",
          batch.inputs.size(), batch.count(), values,
          batch.count() * static_cast<std::size_t>(values));
  const auto& sample = sample_shape.empty() ? batch.sample_shape : sample_shape;
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(count)};
  shape.insert(shape.end(), sample.begin(), sample.end());
  auto* data = const_cast<float*>(batch.inputs.data()) + first * static_cast<std::size_t>(values);
  try {
    return at::from_blob(data, {static_cast<std::int64_t>(count) * values}, at::kFloat)
        .view(shape)
        .to(like.device(), like.scalar_type());
  } catch (const c10::Error&) {
    fail(ErrorKind::argument, "torch: samples of {} values given, the model takes other shapes",
         values);
  }
}

at::Tensor labels_of(const Batch& batch, std::size_t first, std::size_t count,
                     const at::Tensor& logits) {
  const std::size_t each = batch.target_size();
  const auto samples = static_cast<std::int64_t>(count * each);
  require(batch.targets.empty(), ErrorKind::argument,
          "torch: the batch has float targets, cross-entropy takes class labels; choose the loss "
          "mse or huber");
  require(logits.dim() == 2 && logits.size(0) == samples, ErrorKind::argument,
          "torch: the model's output has {} dimensions; [samples x classes] is required, or "
          "[samples x steps x classes] for a label a step",
          logits.dim());
  const std::int64_t classes = logits.size(1);
  at::Tensor labels = at::empty({samples}, at::kLong);
  auto* to = labels.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < count * each; ++i) {
    to[i] = batch.labels[first * each + i];
    require(to[i] >= 0 && to[i] < classes, ErrorKind::argument,
            "torch: sample {} of the batch has label {}, the model has classes 0..{}",
            first + i / each, to[i], classes - 1);
  }
  return labels.to(logits.device());
}

at::Tensor targets_of(const Batch& batch, std::size_t first, std::size_t count,
                      const at::Tensor& outputs, bool binary) {
  const std::size_t each = batch.target_size();
  require(binary || !batch.targets.empty(), ErrorKind::argument,
          "torch: the batch has class labels, this loss takes float targets; choose the loss "
          "cross_entropy");
  require(outputs.numel() == static_cast<std::int64_t>(count * each), ErrorKind::argument,
          "torch: the batch has {} targets a sample, the model {} outputs; as many are required",
          each, outputs.numel() / static_cast<std::int64_t>(count));
  at::Tensor targets = at::empty({outputs.numel()}, at::kFloat);
  auto* to = targets.data_ptr<float>();
  for (std::size_t i = 0; i < count * each; ++i) {
    to[i] = batch.targets.empty() ? static_cast<float>(batch.labels[first * each + i])
                                  : batch.targets[first * each + i];
    require(!binary || (to[i] >= 0 && to[i] <= 1), ErrorKind::argument,
            "torch: sample {} of the batch has the target {}, binary cross-entropy takes numbers "
            "from 0 to 1",
            first + i / each, to[i]);
  }
  return targets.view(outputs.sizes()).to(outputs.device(), outputs.scalar_type());
}

at::Tensor as_given(const Batch& batch, std::size_t first, std::size_t count,
                    const at::Tensor& outputs) {
  const std::size_t each = batch.target_size();
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(count)};
  shape.insert(shape.end(), batch.target_shape.begin(), batch.target_shape.end());
  if (!batch.targets.empty()) {
    auto* data = const_cast<float*>(batch.targets.data()) + first * each;
    return at::from_blob(data, shape, at::kFloat)
        .clone()
        .to(outputs.device(), outputs.scalar_type());
  }
  auto* data = const_cast<std::int32_t*>(batch.labels.data()) + first * each;
  return at::from_blob(data, shape, at::kInt).to(outputs.device(), at::kLong);
}

}  // namespace fast::torch
