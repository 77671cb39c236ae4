#include <fast/torch/backend.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <fast/backend/backend.hpp>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/worker/device_replica.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "torch/objective.hpp"
#include "torch/optimizer_state.hpp"

namespace fast::torch {

/// Gradients of a module in one run of memory, for a function that averages them over workers.
class GradientBlock {
 public:
  /// `views`: of the parameters, in their order.
  GradientBlock(std::vector<at::Tensor> parameters, const std::vector<TensorView>& views);

  /// Copies the gradients of the parameters into the block, calls the hook with views of them, and
  /// copies them back. A parameter without a gradient has one of zeros.
  void hand_out(const GradientHook& hook);

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> copies_;  ///< in the block
  std::vector<TensorView> views_;
  AlignedBuffer block_;
};

namespace {

std::vector<at::Tensor> trained_parameters_of(const ::torch::nn::Module& module) {
  std::vector<at::Tensor> parameters = module.parameters();
  std::erase_if(parameters, [](const at::Tensor& one) { return !one.requires_grad(); });
  return parameters;
}

/// Of parameters in a row: their size, where all are of one type.
std::size_t alignment(const std::vector<TensorView>& views) {
  const bool same = std::ranges::all_of(
      views, [&](const TensorView& view) { return view.dtype == views.front().dtype; });
  return same ? 1 : sizeof(double);
}

}  // namespace

GradientBlock::GradientBlock(std::vector<at::Tensor> parameters,
                             const std::vector<TensorView>& views)
    : parameters_(std::move(parameters)),
      views_(views.begin(), views.begin() + static_cast<std::ptrdiff_t>(parameters_.size())) {
  const std::size_t each = alignment(views_);
  std::size_t size_bytes = 0;
  for (const TensorView& view : views_) size_bytes += round_up(view.size_bytes(), each);
  block_ = AlignedBuffer(size_bytes);
  std::byte* place = block_.data();
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i];
    views_[i].data = place;
    place += round_up(views_[i].size_bytes(), each);
    copies_.push_back(at::from_blob(views_[i].data, parameter.sizes(), parameter.strides(),
                                    parameter.options().device(c10::kCPU).requires_grad(false)));
  }
}

void GradientBlock::hand_out(const GradientHook& hook) {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    at::Tensor& parameter = parameters_[i];
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
    copies_[i].copy_(parameter.grad());
  }
  hook(views_);
  for (std::size_t i = 0; i < views_.size(); ++i) parameters_[i].grad().copy_(copies_[i]);
}

namespace {

class ModuleBackend : public Backend {
 public:
  ModuleBackend(std::shared_ptr<::torch::nn::Module> module, Forward forward,
                std::shared_ptr<::torch::optim::Optimizer> optimizer, ModuleOptions options)
      : module_(std::move(module)),
        forward_(std::move(forward)),
        optimizer_(std::move(optimizer)),
        options_(std::move(options)),
        replica_(*module_, options_.replica),
        like_(module_->parameters().front()),
        parameters_(trained_parameters_of(*module_)),
        objective_(options_),
        state_(*optimizer_, *module_, replica_.parameters(), options_.replica.mirror) {
    require(std::isfinite(options_.clip_norm) && options_.clip_norm >= 0, ErrorKind::argument,
            "torch: clipping to a norm of {}; a positive number is required, or 0 for none",
            options_.clip_norm);
    require(options_.accumulate >= 1, ErrorKind::argument,
            "torch: a batch in {} parts; at least 1 is required", options_.accumulate);
    require(options_.threads >= 0, ErrorKind::argument, "torch: {} threads; at least 1 is required",
            options_.threads);
    if (options_.threads > 0) at::set_num_threads(options_.threads);
  }

  std::string name() const override { return "torch"; }
  std::vector<TensorView> parameters() override {
    replica_.require_in_place();
    return replica_.parameters();
  }
  std::vector<TensorView> frozen() override { return replica_.frozen(); }

  double train(const Batch& batch, const GradientHook& hook) override {
    if (mirrors_) replica_.to_module();
    state_.to_optimizer();
    module_->train();
    optimizer_->zero_grad();
    outputs_.clear();
    norm_.reset();
    const std::size_t samples = batch.count();
    const std::size_t parts =
        std::clamp<std::size_t>(samples, 1, static_cast<std::size_t>(options_.accumulate));
    double loss = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t first = samples * i / parts, count = samples * (i + 1) / parts - first;
      const at::Tensor mean = step_loss(batch, first, count) *
                              (static_cast<double>(count) / static_cast<double>(samples));
      in_one_line(
          "the backward pass", [] { return ""; }, [&] { mean.backward(); });
      loss += mean.item<double>();
    }
    if (hook) {
      if (!gradients_) gradients_.emplace(parameters_, replica_.parameters());
      gradients_->hand_out(hook);
    }
    if (options_.clip_norm > 0)
      norm_ = ::torch::nn::utils::clip_grad_norm_(parameters_, options_.clip_norm);
    optimizer_->step();
    mirrors_ ? replica_.to_host() : replica_.settle();
    return loss;
  }

  Evaluation evaluate(const Batch& batch) override {
    const at::NoGradGuard no_gradients;
    if (mirrors_) replica_.to_module();
    module_->eval();
    const Outputs found = outputs_of(batch, 0, batch.count());
    const auto samples = static_cast<double>(batch.count());
    const bool classifies = objective_.classifies(found);
    Evaluation result;
    result.loss_sum = objective_.loss_of(found).item<double>() * samples;
    if (classifies) result.correct = correct_in(found);
    result.measures = objective_.measures_of(found);
    if (result.measures.empty() && !classifies)
      result.measures = {{"mean_loss", Measure::Form::mean, {result.loss_sum, samples}}};
    return result;
  }

  /// Counted when it is asked for: a device would have to be waited for.
  std::optional<std::size_t> correct_in_step() override {
    if (outputs_.empty() || !objective_.classifies(outputs_.front()) || outputs_.front().per_step)
      return {};
    std::size_t correct = 0;
    for (const Outputs& outputs : outputs_) correct += correct_in(outputs);
    return correct;
  }

  std::optional<double> gradient_norm() override {
    if (norm_ || outputs_.empty()) return norm_;
    const at::NoGradGuard no_gradients;
    double square = 0;
    for (const at::Tensor& parameter : parameters_) {
      if (!parameter.grad().defined()) continue;
      const double norm = parameter.grad().norm().item<double>();
      square += norm * norm;
    }
    return norm_ = std::sqrt(square);
  }

  bool takes_mixed_labels() const override {
    return options_.loss == Loss::cross_entropy && !options_.own_loss;
  }

  std::vector<TensorView> optimizer_state() override { return state_.views(); }

  void set_learning_rate(double learning_rate) override {
    require(std::isfinite(learning_rate) && learning_rate >= 0, ErrorKind::argument,
            "torch: learning rate {}; a number not below 0 is required", learning_rate);
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(learning_rate);
  }

 protected:
  const Replica& replica() const { return replica_; }
  /// Whether the mirror is the weights between two calls, or the module's memory.
  bool mirrors_ = true;

 private:
  Outputs outputs_of(const Batch& batch, std::size_t first, std::size_t count) const {
    const at::Tensor inputs = inputs_of(batch, first, count, options_.sample_shape, like_);
    const auto shape = [&] { return " with inputs " + text_of(inputs.sizes()); };
    return objective_.outputs_of(batch, first, count,
                                 in_one_line("forward()", shape, [&] { return forward_(inputs); }));
  }

  /// Adds the outputs to those of the step.
  at::Tensor step_loss(const Batch& batch, std::size_t first, std::size_t count) {
    const Outputs found = outputs_of(batch, first, count);
    outputs_.push_back({found.values.detach(), found.targets, found.per_step});
    return objective_.loss_of(found);
  }

  std::shared_ptr<::torch::nn::Module> module_;
  Forward forward_;
  std::shared_ptr<::torch::optim::Optimizer> optimizer_;
  ModuleOptions options_;
  Replica replica_;
  at::Tensor like_;                     ///< of the type and on the device of the inputs
  std::vector<at::Tensor> parameters_;  ///< that train, as the first of the views
  Objective objective_;
  OptimizerState state_;
  std::optional<GradientBlock> gradients_;  ///< from the first hook on
  std::vector<Outputs> outputs_;            ///< of the parts of the latest step
  std::optional<double> norm_;              ///< of its gradients before clipping, once computed
};

class DeviceModuleBackend final : public ModuleBackend, public DeviceReplica {
 public:
  DeviceModuleBackend(std::shared_ptr<::torch::nn::Module> module, Forward forward,
                      std::shared_ptr<::torch::optim::Optimizer> optimizer,
                      const ModuleOptions& options)
      : ModuleBackend(std::move(module), std::move(forward), std::move(optimizer),
                      with_mirror(options)),
        accelerator_(options.accelerator) {}

  std::shared_ptr<Accelerator> accelerate() override {
    if (std::exchange(mirrors_, false)) upload();
    return accelerator_;
  }
  std::vector<TensorView> device_parameters() override {
    replica().require_in_place();
    return replica().in_place();
  }
  void download() override { replica().to_host(); }
  void upload() override {
    replica().to_module();
    replica().settle();
  }
  void keep_mirror() override {
    download();
    mirrors_ = true;
  }

 private:
  static ModuleOptions with_mirror(ModuleOptions options) {
    options.replica.mirror = true;
    return options;
  }

  std::shared_ptr<Accelerator> accelerator_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::shared_ptr<::torch::nn::Module> module, Forward forward,
                                      std::shared_ptr<::torch::optim::Optimizer> optimizer,
                                      const ModuleOptions& options) {
  if (options.accelerator)
    return std::make_unique<DeviceModuleBackend>(std::move(module), std::move(forward),
                                                 std::move(optimizer), options);
  return std::make_unique<ModuleBackend>(std::move(module), std::move(forward),
                                         std::move(optimizer), options);
}

}  // namespace fast::torch
