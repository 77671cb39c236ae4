// Nets of dlib behind the adapter that the Trainer drives, header only.
#pragma once

#include <dlib/dnn.h>
#include <fast/backend/backend.hpp>
#include <fast/core/error.hpp>
#include <fast/dlib/replica.hpp>
#include <fast/dlib/task.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fast::dlib {

/// A net that begins with input<matrix<float>> and ends in a loss layer, one of dlib's or your own.
/// Each of its layers has a solver (::dlib::sgd, ::dlib::adam). The task says how samples become
/// the labels of the loss layer, and how the net is measured; see Task. Samples are [values], [rows
/// x columns] or [channels x rows x columns]. evaluate() runs the net as it is. dlib has different
/// types of nets for training and for testing where dropout and bn_ layers occur. Such nets need an
/// evaluation of their own.
template <class Net, class Solver>
class Model final : public Backend {
 public:
  /// Null `net`: a new one. Its parameters come to be here; `initialize` may fill them in.
  Model(std::unique_ptr<Net> net, std::vector<std::int64_t> sample_shape, const Solver& solver,
        double learning_rate = 0.05,
        const std::function<void(const std::vector<TensorView>&)>& initialize = {},
        Task<Net> task = {})
      : net_(net ? std::move(net) : std::make_unique<Net>()),
        shape_(std::move(sample_shape)),
        learning_rate_(learning_rate),
        solvers_(Net::num_computational_layers, solver),
        task_(std::move(task)) {
    require(!shape_.empty() && shape_.size() <= 3, ErrorKind::argument,
            "dlib: samples of {} sides; [values], [rows x columns] or [channels x rows x columns] "
            "is required",
            shape_.size());
    const ::dlib::matrix<float> sample = ::dlib::zeros_matrix<float>(1, 1);
    ::dlib::resizable_tensor ignored;
    net_->to_tensor(&sample, &sample + 1, ignored);  // dlib wants to have seen one
    const std::vector<float> zeros(values_per_sample());
    const std::int32_t label = 0;
    net_->subnet().forward(load({zeros, {&label, 1}, shape_}));
    replica_ = std::make_unique<Replica<Net>>(*net_);
    if (initialize) initialize(replica_->parameters());
  }

  Net& net() { return *net_; }

  std::string name() const override { return "dlib"; }
  std::vector<TensorView> parameters() override {
    replica_->sync();
    return replica_->parameters();
  }

  double train(const Batch& batch, const GradientHook& hook) override {
    const ::dlib::tensor& inputs = load(batch);
    const std::vector<Label<Net>> labels = task_.labels(batch, net_->subnet().get_output());
    replica_->sync();
    const double loss = net_->compute_parameter_gradients(inputs, labels.begin());
    correct_ = task_.correct_in(net_->subnet().get_output(), labels);
    has_stepped_ = true;
    if (hook) call(hook);
    net_->update_parameters(::dlib::make_sstack(solvers_), learning_rate_);
    replica_->sync();
    return loss;
  }

  Evaluation evaluate(const Batch& batch) override {
    const ::dlib::tensor& inputs = load(batch);
    const std::vector<Label<Net>> labels = task_.labels(batch, net_->subnet().get_output());
    Evaluation result;
    result.loss_sum =
        net_->compute_loss(inputs, labels.begin()) * static_cast<double>(batch.count());
    const ::dlib::tensor& outputs = net_->subnet().get_output();
    result.correct = task_.correct_in(outputs, labels).value_or(0);
    result.measures = task_.measures_of(outputs, batch, result.loss_sum);
    return result;
  }

  std::optional<std::size_t> correct_in_step() override { return correct_; }

  std::optional<double> gradient_norm() override {
    if (!has_stepped_) return {};
    double square = 0;
    ::dlib::visit_layer_parameter_gradients(*net_, [&](std::size_t, ::dlib::tensor& gradients) {
      const float* values = gradients.size() == 0 ? nullptr : gradients.host();
      for (std::size_t i = 0; i < gradients.size(); ++i)
        square += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    });
    return std::sqrt(square);
  }

  void set_learning_rate(double learning_rate) override {
    require(std::isfinite(learning_rate) && learning_rate >= 0, ErrorKind::argument,
            "dlib: learning rate {}; a number not below 0 is required", learning_rate);
    learning_rate_ = learning_rate;
  }

 private:
  std::size_t values_per_sample() const {
    std::size_t values = 1;
    for (const std::int64_t side : shape_) values *= static_cast<std::size_t>(side);
    return values;
  }

  const ::dlib::tensor& load(const Batch& batch) {
    const std::size_t values = values_per_sample();
    require(batch.count() > 0 && batch.inputs.size() == batch.count() * values, ErrorKind::argument,
            "dlib: a batch of {} samples and {} values; at least one sample of {} is required",
            batch.count(), batch.inputs.size(), values);
    const auto count = static_cast<long long>(batch.count());
    if (shape_.size() == 1) inputs_.set_size(count, 1, shape_[0], 1);
    if (shape_.size() == 2) inputs_.set_size(count, 1, shape_[0], shape_[1]);
    if (shape_.size() == 3) inputs_.set_size(count, shape_[0], shape_[1], shape_[2]);
    std::copy(batch.inputs.begin(), batch.inputs.end(), inputs_.host_write_only());
    return inputs_;
  }

  void call(const GradientHook& hook) {
    std::vector<TensorView> views = replica_->parameters();
    std::size_t i = 0;
    ::dlib::visit_layer_parameter_gradients(*net_, [&](std::size_t, ::dlib::tensor& gradients) {
      if (gradients.size() == 0) return;
      require(i < views.size() && gradients.size() == views[i].element_count(), ErrorKind::internal,
              "dlib: gradients and parameters do not match");
      views[i++].data = gradients.host();
    });
    hook(views);
  }

  std::unique_ptr<Net> net_;
  std::vector<std::int64_t> shape_;
  double learning_rate_;
  std::vector<Solver> solvers_;
  Task<Net> task_;
  std::unique_ptr<Replica<Net>> replica_;
  ::dlib::resizable_tensor inputs_;
  std::optional<std::size_t> correct_;  ///< in the latest step
  bool has_stepped_ = false;
};

/// A net that ends in loss_multiclass_log, and learns one class label a sample.
template <class Net, class Solver>
using Classifier = Model<Net, Solver>;

}  // namespace fast::dlib
