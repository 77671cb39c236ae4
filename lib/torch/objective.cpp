#include "torch/objective.hpp"

#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <utility>

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

namespace {

namespace F = ::torch::nn::functional;
using Form = Measure::Form;

double sum_of(const at::Tensor& values) { return values.to(at::kDouble).sum().item<double>(); }

std::vector<Measure> binary_measures(const at::Tensor& outputs, const at::Tensor& targets) {
  const at::Tensor ones = targets.gt(0.5);
  const auto count = static_cast<double>(targets.numel());
  Measure area = empty_area("auc");
  const at::Tensor scores = outputs.to(at::kCPU, at::kDouble).contiguous(),
                   classes = ones.to(at::kCPU).contiguous();
  for (std::int64_t i = 0; i < scores.numel(); ++i) {
    const double score = scores.data_ptr<double>()[i];
    const std::size_t bin = std::isnan(score) ? 0 : score_bin(score);
    area.sums[bin + (classes.data_ptr<bool>()[i] ? score_bins : 0)] +=
        std::isnan(score) ? score : 1;
  }
  return {{"accuracy", Form::share, {sum_of(outputs.gt(0).eq(ones)), count}}, std::move(area)};
}

}  // namespace

std::size_t correct_in(const Outputs& found) {
  const at::NoGradGuard no_gradients;
  return static_cast<std::size_t>(
      found.values.argmax(1).eq(found.targets).sum().item<std::int64_t>());
}

Objective::Objective(const ModuleOptions& options)
    : loss_(options.loss),
      huber_delta_(options.huber_delta),
      label_smoothing_(options.label_smoothing),
      class_weights_(options.class_weights),
      own_loss_(options.own_loss),
      own_measures_(options.own_measures) {
  require(huber_delta_ > 0, ErrorKind::argument,
          "torch: a delta of {} of the huber loss; a positive number is required", huber_delta_);
  require(label_smoothing_ >= 0 && label_smoothing_ < 1, ErrorKind::argument,
          "torch: label smoothing {}; a number from 0 to less than 1 is required",
          label_smoothing_);
  require(std::ranges::all_of(class_weights_, [](double w) { return std::isfinite(w) && w >= 0; }),
          ErrorKind::argument, "torch: weights of classes must be finite and not negative");
  require((label_smoothing_ == 0 && class_weights_.empty()) ||
              (loss_ == Loss::cross_entropy && !own_loss_),
          ErrorKind::argument,
          "torch: label smoothing and weights of classes belong to the loss cross_entropy");
}

Outputs Objective::outputs_of(const Batch& batch, std::size_t first, std::size_t count,
                              at::Tensor outputs) const {
  const bool per_step = !batch.target_shape.empty();
  if (own_loss_) return {outputs, as_given(batch, first, count, outputs), per_step};
  if (loss_ != Loss::cross_entropy) {
    const bool binary = loss_ == Loss::binary_cross_entropy;
    return {outputs, targets_of(batch, first, count, outputs, binary), per_step};
  }
  if (per_step && outputs.dim() == 3) outputs = outputs.flatten(0, 1);
  Outputs found{outputs, labels_of(batch, first, count, outputs), per_step};
  if (batch.mixed_labels.empty()) return found;
  Batch other = batch;
  other.labels = batch.mixed_labels;
  found.mixed = labels_of(other, first, count, outputs);
  found.share = batch.share;
  return found;
}

at::Tensor Objective::loss_of(const Outputs& found) const {
  if (own_loss_) return own_loss_of(found.values, found.targets);
  switch (loss_) {
    case Loss::mse:
      return at::mse_loss(found.values, found.targets);
    case Loss::huber:
      return at::huber_loss(found.values, found.targets, at::Reduction::Mean, huber_delta_);
    case Loss::binary_cross_entropy:
      return at::binary_cross_entropy_with_logits(found.values, found.targets);
    case Loss::cross_entropy:
      break;
  }
  const at::Tensor loss = cross_entropy(found.values, found.targets);
  if (!found.mixed.defined()) return loss;
  return found.share * loss + (1 - found.share) * cross_entropy(found.values, found.mixed);
}

at::Tensor Objective::cross_entropy(const at::Tensor& logits, const at::Tensor& labels) const {
  const bool is_plain = label_smoothing_ == 0 && class_weights_.empty();
  if (is_plain || !at::GradMode::is_enabled()) return F::cross_entropy(logits, labels);
  at::Tensor weights;
  if (!class_weights_.empty()) {
    require(std::cmp_equal(class_weights_.size(), logits.size(1)), ErrorKind::argument,
            "torch: {} weights of classes for {} outputs; one a class is required",
            class_weights_.size(), logits.size(1));
    weights = at::tensor(class_weights_, logits.options().requires_grad(false));
  }
  const at::Tensor sum =
      at::cross_entropy_loss(logits, labels, weights, at::Reduction::Sum, -100, label_smoothing_);
  return sum / static_cast<double>(labels.numel());
}

at::Tensor Objective::own_loss_of(const at::Tensor& outputs, const at::Tensor& targets) const {
  const at::Tensor loss =
      calling_own("own_loss", outputs, targets, [&] { return own_loss_(outputs, targets); });
  require(loss.defined() && loss.numel() == 1, ErrorKind::argument,
          "torch: own_loss returned {} numbers; one is required, the mean over the samples",
          loss.defined() ? loss.numel() : 0);
  require(loss.requires_grad() || !at::GradMode::is_enabled(), ErrorKind::argument,
          "torch: own_loss returned a number without a gradient; compute it from the outputs");
  return loss.sum();
}

bool Objective::classifies(const Outputs& found) const {
  if (!own_loss_) return loss_ == Loss::cross_entropy;
  return found.targets.scalar_type() == at::kLong && found.targets.dim() == 1 &&
         found.values.dim() == 2 && found.values.size(1) > 1;
}

std::vector<Measure> Objective::measures_of(const Outputs& found) const {
  const at::Tensor &outputs = found.values, &targets = found.targets;
  if (own_measures_) {
    return calling_own("own_measures", outputs, targets,
                       [&] { return own_measures_(outputs, targets); });
  }
  if (own_loss_) return {};
  if (loss_ == Loss::cross_entropy) return class_measures(found);
  if (loss_ == Loss::binary_cross_entropy) return binary_measures(outputs, targets);
  const auto count = static_cast<double>(targets.numel());
  const at::Tensor apart = (outputs - targets).to(at::kDouble);
  return {{"mae", Form::mean, {sum_of(apart.abs()), count}},
          {"rmse", Form::root_of_mean, {sum_of(apart.square()), count}}};
}

std::vector<Measure> Objective::class_measures(const Outputs& found) const {
  const at::Tensor &logits = found.values, &labels = found.targets;
  constexpr std::int64_t few_classes = 10, top = 5;
  if (!found.per_step && logits.size(1) <= few_classes) return {};
  const auto count = static_cast<double>(labels.numel());
  const Measure accuracy{"accuracy", Form::share, {static_cast<double>(correct_in(found)), count}};
  if (found.per_step) {
    const double loss = F::cross_entropy(logits, labels).item<double>();
    return {accuracy, {"perplexity", Form::exp_of_mean, {loss * count, count}}};
  }
  const at::Tensor best = std::get<1>(logits.topk(top, 1));
  return {accuracy, {"top5", Form::share, {sum_of(best.eq(labels.unsqueeze(1))), count}}};
}

}  // namespace fast::torch
