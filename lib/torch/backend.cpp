#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/torch/backend.hpp>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace fast::torch {
namespace {

namespace F = ::torch::nn::functional;

/// Keys are pointers from LibTorch 2 on, their text before.
template <class State, class States>
State& state_of(States& states, const at::Tensor& parameter) {
  auto* place = parameter.unsafeGetTensorImpl();
  typename States::key_type key{};
  if constexpr (std::is_same_v<typename States::key_type, std::string>) {
    std::ostringstream text;
    text << place;
    key = text.str();
  } else {
    key = place;
  }
  auto& state = states[key];
  if (!state) state = std::make_unique<State>();
  return static_cast<State&>(*state);
}

/// State that there would be after the first step, as zeros, so that it can be read and written
/// before: the first step gives the same values either way.
class OptimizerState {
 public:
  OptimizerState(::torch::optim::Optimizer& optimizer, const ::torch::nn::Module& module,
                 const std::vector<TensorView>& views) {
    namespace optim = ::torch::optim;
    const at::NoGradGuard no_gradients;
    std::size_t i = 0;
    for (const auto& item : module.named_parameters()) names_.emplace(impl(item.value()), i++);
    for (auto& group : optimizer.param_groups())
      for (const at::Tensor& p : group.params()) {
        const auto name = names_.find(impl(p));
        if (name == names_.end() || !p.is_cpu()) continue;
        const TensorView& view = views[name->second];
        if (const auto* sgd = dynamic_cast<optim::SGDOptions*>(&group.options())) {
          if (sgd->momentum() == 0 || sgd->dampening() != 0) continue;
          add("momentum.", view,
              state_of<optim::SGDParamState>(optimizer.state(), p).momentum_buffer(), p);
        } else if (const auto* adam = dynamic_cast<optim::AdamOptions*>(&group.options())) {
          if (adam->amsgrad()) continue;
          add_moments(view, state_of<optim::AdamParamState>(optimizer.state(), p), p);
        } else if (const auto* adamw = dynamic_cast<optim::AdamWOptions*>(&group.options())) {
          if (adamw->amsgrad()) continue;
          add_moments(view, state_of<optim::AdamWParamState>(optimizer.state(), p), p);
        }
      }
  }
  const std::vector<TensorView>& views() const { return views_; }

 private:
  static const void* impl(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

  template <class State>
  void add_moments(const TensorView& view, State& state, const at::Tensor& p) {
    add("exp_avg.", view, state.exp_avg(), p);
    add("exp_avg_sq.", view, state.exp_avg_sq(), p);
    views_.push_back({"step." + view.name, &state.step(), {}, DType::i64, Role::parameter, {}, {}});
  }

  void add(const char* prefix, const TensorView& view, at::Tensor& tensor, const at::Tensor& p) {
    if (!tensor.defined()) tensor = at::zeros_like(p, p.options().requires_grad(false));
    TensorView mine = view;
    mine.name = prefix + view.name;
    mine.data = tensor.data_ptr();
    views_.push_back(std::move(mine));
  }

  std::map<const void*, std::size_t> names_;
  std::vector<TensorView> views_;
};

class ModuleBackend final : public Backend {
 public:
  ModuleBackend(std::shared_ptr<::torch::nn::Module> module, Forward forward,
                std::shared_ptr<::torch::optim::Optimizer> optimizer, ModuleOptions options)
      : module_(std::move(module)),
        forward_(std::move(forward)),
        optimizer_(std::move(optimizer)),
        options_(std::move(options)),
        replica_(*module_, options_.replica),
        parameters_(module_->parameters()),
        state_(*optimizer_, *module_, replica_.parameters()) {
    require(std::isfinite(options_.clip_norm) && options_.clip_norm >= 0, ErrorKind::argument,
            "torch: clipping to a norm of {}; a positive number is required, or 0 for none",
            options_.clip_norm);
    require(options_.accumulate >= 1, ErrorKind::argument,
            "torch: a batch in {} parts; at least 1 is required", options_.accumulate);
    require(options_.threads >= 0, ErrorKind::argument, "torch: {} threads; at least 1 is required",
            options_.threads);
    require(options_.huber_delta > 0, ErrorKind::argument,
            "torch: a delta of {} of the huber loss; a positive number is required",
            options_.huber_delta);
    if (options_.threads > 0) at::set_num_threads(options_.threads);
  }

  std::string name() const override { return "torch"; }
  std::vector<TensorView> parameters() override {
    replica_.require_in_place();
    return replica_.parameters();
  }

  double train(const Batch& batch, const GradientHook& hook) override {
    replica_.to_module();
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
      const at::Tensor mean = loss_of(batch, first, count) *
                              (static_cast<double>(count) / static_cast<double>(samples));
      in_one_line(
          "the backward pass", [] { return ""; }, [&] { mean.backward(); });
      loss += mean.item<double>();
    }
    if (hook) call(hook);
    if (options_.clip_norm > 0)
      norm_ = ::torch::nn::utils::clip_grad_norm_(module_->parameters(), options_.clip_norm);
    optimizer_->step();
    replica_.to_host();
    return loss;
  }

  Evaluation evaluate(const Batch& batch) override {
    const at::NoGradGuard no_gradients;
    replica_.to_module();
    module_->eval();
    const std::vector<Outputs> trained = std::exchange(outputs_, {});
    Evaluation result;
    const at::Tensor mean = loss_of(batch, 0, batch.count());
    result.loss_sum = mean.item<double>() * samples_in(batch);
    if (classifies(outputs_.front())) result.correct = correct_in(outputs_.front());
    result.measures = measures_in(outputs_.front(), batch);
    if (result.measures.empty() && !classifies(outputs_.front())) {
      result.measures = {{"mean_loss", Form::mean, {result.loss_sum, samples_in(batch)}}};
    }
    outputs_ = trained;
    return result;
  }

  /// Counted when it is asked for: a device would have to be waited for.
  std::optional<std::size_t> correct_in_step() override {
    if (outputs_.empty() || !classifies(outputs_.front()) || outputs_.front().per_step) return {};
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

  std::vector<TensorView> optimizer_state() override { return state_.views(); }

  void set_learning_rate(double learning_rate) override {
    require(std::isfinite(learning_rate) && learning_rate >= 0, ErrorKind::argument,
            "torch: learning rate {}; a number not below 0 is required", learning_rate);
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(learning_rate);
  }

 private:
  using Form = Measure::Form;

  /// Logits and labels, one row each, or outputs and targets.
  struct Outputs {
    at::Tensor logits, labels;
    bool per_step = false;
  };

  /// Whether there is a row of logits for each label.
  bool classifies(const Outputs& found) const {
    if (!options_.own_loss) return options_.loss == Loss::cross_entropy;
    return found.labels.scalar_type() == at::kLong && found.labels.dim() == 1 &&
           found.logits.dim() == 2 && found.logits.size(1) > 1;
  }

  static std::size_t correct_in(const Outputs& outputs) {
    const at::NoGradGuard no_gradients;
    return static_cast<std::size_t>(
        outputs.logits.argmax(1).eq(outputs.labels).sum().item<std::int64_t>());
  }

  /// Adds the outputs to those of the step.
  at::Tensor loss_of(const Batch& batch, std::size_t first, std::size_t count) {
    const at::Tensor given = inputs(batch, first, count);
    const auto shape = [&] { return " with inputs " + text_of(given.sizes()); };
    at::Tensor outputs = in_one_line("forward()", shape, [&] { return forward_(given); });
    const bool per_step = !batch.target_shape.empty();
    if (options_.own_loss) {
      const at::Tensor targets = as_given(batch, first, count, outputs);
      outputs_.push_back({outputs.detach(), targets, per_step});
      return own_loss_of(outputs, targets);
    }
    if (options_.loss != Loss::cross_entropy) {
      const at::Tensor targets = targets_of(batch, first, count, outputs);
      outputs_.push_back({outputs.detach(), targets, per_step});
      return loss_of(outputs, targets);
    }
    if (per_step && outputs.dim() == 3) outputs = outputs.flatten(0, 1);
    const at::Tensor labels = labels_of(batch, first, count, outputs);
    outputs_.push_back({outputs.detach(), labels, per_step});
    return F::cross_entropy(outputs, labels);
  }

  at::Tensor own_loss_of(const at::Tensor& outputs, const at::Tensor& targets) const {
    const at::Tensor loss = calling_own("own_loss", outputs, targets,
                                        [&] { return options_.own_loss(outputs, targets); });
    require(loss.defined() && loss.numel() == 1, ErrorKind::argument,
            "torch: own_loss returned {} numbers; one is required, the mean over the samples",
            loss.defined() ? loss.numel() : 0);
    require(loss.requires_grad() || !at::GradMode::is_enabled(), ErrorKind::argument,
            "torch: own_loss returned a number without a gradient; compute it from the outputs");
    return loss.sum();
  }

  static std::string text_of(at::IntArrayRef shape) {
    std::ostringstream text;
    text << shape;
    return text.str();
  }

  /// A call into LibTorch or the caller's code, whose errors of LibTorch become one line. `with()`:
  /// the shapes, for the message.
  template <class With, class Call>
  static std::invoke_result_t<const Call&> in_one_line(const char* what, const With& with,
                                                       const Call& call) {
    try {
      return call();
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      fail(ErrorKind::argument, "torch: {} failed{}: {}", what, with(),
           text.substr(0, text.find('\n')));
    }
  }

  template <class Call>
  static std::invoke_result_t<const Call&> calling_own(const char* what, const at::Tensor& outputs,
                                                       const at::Tensor& targets,
                                                       const Call& call) {
    const auto shapes = [&] {
      return fmt::format(" with outputs {} and targets {}", text_of(outputs.sizes()),
                         text_of(targets.sizes()));
    };
    return in_one_line(what, shapes, call);
  }

  /// What a sample has, unchanged.
  static at::Tensor as_given(const Batch& batch, std::size_t first, std::size_t count,
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

  at::Tensor loss_of(const at::Tensor& outputs, const at::Tensor& targets) const {
    if (options_.loss == Loss::mse) return at::mse_loss(outputs, targets);
    if (options_.loss == Loss::huber)
      return at::huber_loss(outputs, targets, at::Reduction::Mean, options_.huber_delta);
    return at::binary_cross_entropy_with_logits(outputs, targets);
  }

  static double samples_in(const Batch& batch) { return static_cast<double>(batch.count()); }
  static double sum_of(const at::Tensor& values) {
    return values.to(at::kDouble).sum().item<double>();
  }

  /// As nn::measures_of().
  std::vector<Measure> measures_in(const Outputs& found, const Batch& batch) const {
    const at::Tensor &outputs = found.logits, &targets = found.labels;
    if (options_.own_measures) {
      return calling_own("own_measures", outputs, targets,
                         [&] { return options_.own_measures(outputs, targets); });
    }
    if (options_.own_loss) return {};
    const auto count = static_cast<double>(targets.numel());
    if (options_.loss == Loss::cross_entropy) {
      constexpr std::int64_t few_classes = 10, top = 5;
      if (batch.target_shape.empty() && outputs.size(1) <= few_classes) return {};
      const Measure accuracy{
          "accuracy", Form::share, {static_cast<double>(correct_in(found)), count}};
      if (!batch.target_shape.empty()) {
        const double loss = F::cross_entropy(outputs, targets).item<double>();
        return {accuracy, {"perplexity", Form::exp_of_mean, {loss * count, count}}};
      }
      const at::Tensor best = std::get<1>(outputs.topk(top, 1));
      return {accuracy, {"top5", Form::share, {sum_of(best.eq(targets.unsqueeze(1))), count}}};
    }
    if (options_.loss == Loss::binary_cross_entropy) return binary_measures(outputs, targets);
    const at::Tensor apart = (outputs - targets).to(at::kDouble);
    return {{"mae", Form::mean, {sum_of(apart.abs()), count}},
            {"rmse", Form::root_of_mean, {sum_of(apart.square()), count}}};
  }

  static std::vector<Measure> binary_measures(const at::Tensor& outputs,
                                              const at::Tensor& targets) {
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

  at::Tensor inputs(const Batch& batch, std::size_t first, std::size_t count) const {
    std::int64_t values = 1;
    for (const std::int64_t side : batch.sample_shape) values *= side;
    require(count > 0, ErrorKind::argument, "torch: the batch is empty");
    require(batch.inputs.size() == batch.count() * static_cast<std::size_t>(values),
            ErrorKind::argument, "torch: {} input values given, {} samples of {} are {}",
            batch.inputs.size(), batch.count(), values,
            batch.count() * static_cast<std::size_t>(values));
    const auto& sample = options_.sample_shape.empty() ? batch.sample_shape : options_.sample_shape;
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(count)};
    shape.insert(shape.end(), sample.begin(), sample.end());
    auto* data = const_cast<float*>(batch.inputs.data()) + first * static_cast<std::size_t>(values);
    const at::Tensor& like = parameters_.front();
    try {
      return at::from_blob(data, {static_cast<std::int64_t>(count) * values}, at::kFloat)
          .view(shape)
          .to(like.device(), like.scalar_type());
    } catch (const c10::Error&) {
      fail(ErrorKind::argument, "torch: samples of {} values given, the model takes other shapes",
           values);
    }
  }

  static at::Tensor labels_of(const Batch& batch, std::size_t first, std::size_t count,
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

  /// In the shape and type of the outputs.
  at::Tensor targets_of(const Batch& batch, std::size_t first, std::size_t count,
                        const at::Tensor& outputs) const {
    const std::size_t each = batch.target_size();
    const bool binary = options_.loss == Loss::binary_cross_entropy;
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

  /// Gradients are handed out in a row, so that an average over all workers is one run of memory.
  void call(const GradientHook& hook) {
    const at::NoGradGuard no_gradients;
    const std::vector<TensorView>& known = replica_.parameters();
    std::vector<TensorView> views(known.begin(),
                                  known.begin() + static_cast<std::ptrdiff_t>(parameters_.size()));
    std::size_t size_bytes = 0;
    for (const TensorView& view : views)
      size_bytes += round_up(view.size_bytes(), alignment(views));
    if (gradients_.size_bytes() < size_bytes) gradients_ = AlignedBuffer(size_bytes);
    std::byte* place = gradients_.data();
    std::vector<at::Tensor> copies;
    for (std::size_t i = 0; i < views.size(); ++i) {
      at::Tensor& parameter = parameters_[i];
      views[i].data = place;
      place += round_up(views[i].size_bytes(), alignment(views));
      copies.push_back(at::from_blob(views[i].data, parameter.sizes(), parameter.strides(),
                                     parameter.options().device(c10::kCPU).requires_grad(false)));
      if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
      copies[i].copy_(parameter.grad());
    }
    hook(views);
    for (std::size_t i = 0; i < views.size(); ++i) parameters_[i].grad().copy_(copies[i]);
  }

  /// Of parameters in a row: their size, where all are of one type.
  static std::size_t alignment(const std::vector<TensorView>& views) {
    const bool same = std::all_of(views.begin(), views.end(), [&](const TensorView& view) {
      return view.dtype == views.front().dtype;
    });
    return same ? 1 : sizeof(double);
  }

  std::shared_ptr<::torch::nn::Module> module_;
  Forward forward_;
  std::shared_ptr<::torch::optim::Optimizer> optimizer_;
  ModuleOptions options_;
  Replica replica_;
  std::vector<at::Tensor> parameters_;  ///< as the first of the views
  OptimizerState state_;
  AlignedBuffer gradients_;
  std::vector<Outputs> outputs_;  ///< of the parts of the latest step
  std::optional<double> norm_;    ///< of its gradients before clipping, once computed
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::shared_ptr<::torch::nn::Module> module, Forward forward,
                                      std::shared_ptr<::torch::optim::Optimizer> optimizer,
                                      const ModuleOptions& options) {
  return std::make_unique<ModuleBackend>(std::move(module), std::move(forward),
                                         std::move(optimizer), options);
}

}  // namespace fast::torch
