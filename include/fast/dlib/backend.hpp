// A classifier of dlib behind the adapter that the Trainer drives, header only.
#pragma once

#include <dlib/dnn.h>
#include <fast/backend/backend.hpp>
#include <fast/core/error.hpp>
#include <fast/dlib/replica.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fast::dlib {

/// A net that ends in loss_multiclass_log and begins with input<matrix<float>>, with a solver
/// (::dlib::sgd, ::dlib::adam) for each of its layers. Samples are [channels x rows x columns], or
/// a vector. evaluate() runs the net as it is: for dropout and bn_ layers, dlib's nets for training
/// and for testing are different types, and such nets want an evaluation of their own.
template <class Net, class Solver>
class Classifier final : public Backend {
 public:
  /// Null `net`: a new one. Its parameters come to be here; `initialize` may fill them in.
  Classifier(std::unique_ptr<Net> net, std::vector<std::int64_t> sample_shape, const Solver& solver,
             double learning_rate = 0.05,
             const std::function<void(const std::vector<TensorView>&)>& initialize = {})
      : net_(net ? std::move(net) : std::make_unique<Net>()),
        shape_(std::move(sample_shape)),
        learning_rate_(learning_rate),
        solvers_(Net::num_computational_layers, solver) {
    require(shape_.size() == 1 || shape_.size() == 3, ErrorKind::argument,
            "dlib: samples of {} sides; [values] or [channels x rows x columns] is required",
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
    const std::vector<unsigned long> labels = labels_of(batch);
    replica_->sync();
    const double loss = net_->compute_parameter_gradients(inputs, labels.begin());
    correct_ = correct_in(net_->subnet().get_output(), labels);
    if (hook) call(hook);
    net_->update_parameters(::dlib::make_sstack(solvers_), learning_rate_);
    replica_->sync();
    return loss;
  }

  Evaluation evaluate(const Batch& batch) override {
    const ::dlib::tensor& inputs = load(batch);
    const std::vector<unsigned long> labels = labels_of(batch);
    const ::dlib::tensor& outputs = net_->subnet().forward(inputs);
    Evaluation result;
    const auto classes = static_cast<std::size_t>(outputs.k());
    for (std::size_t i = 0; i < batch.count(); ++i) {
      const float* logits = outputs.host() + i * classes;
      const float* best = std::max_element(logits, logits + classes);
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c)
        sum += std::exp(static_cast<double>(logits[c]) - static_cast<double>(*best));
      result.loss_sum +=
          std::log(sum) + static_cast<double>(*best) - static_cast<double>(logits[labels[i]]);
    }
    result.correct = correct_in(outputs, labels);
    return result;
  }

  std::optional<std::size_t> correct_in_step() override { return correct_; }

  std::optional<double> gradient_norm() override {
    if (!correct_) return {};
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
    require_class_labels(batch, "dlib");
    const std::size_t values = values_per_sample();
    require(batch.count() > 0 && batch.inputs.size() == batch.count() * values, ErrorKind::argument,
            "dlib: a batch of {} samples and {} values; at least one sample of {} is required",
            batch.count(), batch.inputs.size(), values);
    const auto count = static_cast<long long>(batch.count());
    if (shape_.size() == 1)
      inputs_.set_size(count, 1, shape_[0], 1);
    else
      inputs_.set_size(count, shape_[0], shape_[1], shape_[2]);
    std::copy(batch.inputs.begin(), batch.inputs.end(), inputs_.host_write_only());
    return inputs_;
  }

  static std::size_t correct_in(const ::dlib::tensor& outputs,
                                const std::vector<unsigned long>& labels) {
    const auto classes = static_cast<std::size_t>(outputs.k());
    std::size_t correct = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const float* logits = outputs.host() + i * classes;
      const float* best = std::max_element(logits, logits + classes);
      correct += static_cast<std::size_t>(best - logits) == labels[i] ? 1 : 0;
    }
    return correct;
  }

  std::vector<unsigned long> labels_of(const Batch& batch) const {
    const auto classes = static_cast<std::int32_t>(net_->subnet().get_output().k());
    std::vector<unsigned long> labels;
    for (const std::int32_t label : batch.labels) {
      require(label >= 0 && label < classes, ErrorKind::argument,
              "dlib: a label of {}, the net has classes 0..{}", label, classes - 1);
      labels.push_back(static_cast<unsigned long>(label));
    }
    return labels;
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
  std::unique_ptr<Replica<Net>> replica_;
  ::dlib::resizable_tensor inputs_;
  std::optional<std::size_t> correct_;  ///< in the latest step
};

}  // namespace fast::dlib
