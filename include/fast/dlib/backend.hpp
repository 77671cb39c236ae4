// Nets of dlib behind the adapter that the Trainer drives, header only.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/core/batch.hpp>
#include <fast/core/error.hpp>
#include <fast/core/measure.hpp>
#include <fast/dlib/replica.hpp>

#include <dlib/dnn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fast::dlib {

// What a net of dlib learns of a batch, and what it is measured by.

/// What a net's loss layer learns of one sample.
template <class Net>
using Label = typename Net::training_label_type;

/// Without functions, labels come from the batch by their type:
///
///   unsigned long      the sample's class label (loss_multiclass_log); measured by the accuracy
///   float              its target (loss_mean_squared); measured by mae and rmse
///   matrix<float>      its targets as a column (loss_mean_squared_multioutput); mae and rmse
///   matrix<uint16_t>   a class label for each row and column of the outputs
///                      (loss_multiclass_log_per_pixel), for one label a step; the accuracy
///
/// Other types need `label`. Own measures replace those above.
template <class Net>
struct Task {
  /// The label of one sample. Throws Error(argument) if the sample does not fit.
  std::function<Label<Net>(const Batch& batch, std::size_t sample)> label = {};
  /// Sums over the samples, by the outputs [samples x k x rows x columns] of the net.
  std::function<std::vector<Measure>(const ::dlib::tensor& outputs, const Batch& batch)> measures =
      {};

  /// `outputs`: of an earlier batch, for their shape.
  std::vector<Label<Net>> labels(const Batch& batch, const ::dlib::tensor& outputs) const {
    std::vector<Label<Net>> all;
    for (std::size_t i = 0; i < batch.count(); ++i) {
      all.push_back(label ? label(batch, i) : default_label(batch, i, outputs));
    }
    return all;
  }

  /// Samples whose largest output is their class label's. Nothing for other labels.
  std::optional<std::size_t> correct_in(const ::dlib::tensor& outputs,
                                        const std::vector<Label<Net>>& labels) const {
    if constexpr (is_class) {
      std::size_t correct = 0;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        correct += best_of(outputs, i, 0) == labels[i] ? 1 : 0;
      }
      return correct;
    }
    return std::nullopt;
  }

  std::vector<Measure> measures_of(const ::dlib::tensor& outputs, const Batch& batch,
                                   double loss_sum) const {
    if (measures) return measures(outputs, batch);
    if constexpr (is_class) {
      return {};
    } else if constexpr (is_class_map) {
      return {label_share(outputs, batch)};
    } else {
      if (!label && outputs.size() == batch.targets.size()) return distances(outputs, batch);
      const auto count = static_cast<double>(batch.count());
      return {{"mean_loss", Measure::Form::mean, {loss_sum, count}}};
    }
  }

 private:
  static constexpr bool is_class = std::is_same_v<Label<Net>, unsigned long>;
  static constexpr bool is_number = std::is_same_v<Label<Net>, float>;
  static constexpr bool is_vector = std::is_same_v<Label<Net>, ::dlib::matrix<float>>;
  static constexpr bool is_class_map = std::is_same_v<Label<Net>, ::dlib::matrix<std::uint16_t>>;

  static std::size_t places(const ::dlib::tensor& outputs) {
    return static_cast<std::size_t>(outputs.nr() * outputs.nc());
  }

  /// The class of the largest output at a row and column.
  static std::size_t best_of(const ::dlib::tensor& outputs, std::size_t sample, std::size_t place) {
    const std::size_t classes = static_cast<std::size_t>(outputs.k()), each = places(outputs);
    const float* first = outputs.host() + sample * classes * each + place;
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes; ++c) {
      if (first[c * each] > first[best * each]) best = c;
    }
    return best;
  }

  static unsigned long checked_label(std::int32_t label, const ::dlib::tensor& outputs) {
    require(label >= 0 && label < outputs.k(), ErrorKind::argument,
            "dlib: a label of {}, the net has classes 0..{}", label, outputs.k() - 1);
    return static_cast<unsigned long>(label);
  }

  static void require_targets(const Batch& batch, std::size_t wanted) {
    require(!batch.targets.empty(), ErrorKind::argument,
            "dlib: the batch has class labels, this loss takes float targets; end the net in "
            "loss_multiclass_log");
    require(batch.target_size() == wanted, ErrorKind::argument,
            "dlib: the batch has {} targets a sample, the net {} outputs; as many are required",
            batch.target_size(), wanted);
  }

  static Label<Net> default_label(const Batch& batch, std::size_t sample,
                                  const ::dlib::tensor& outputs) {
    const std::size_t each = batch.target_size();
    if constexpr (is_class) {
      require_class_labels(batch, "dlib");
      return checked_label(batch.labels[sample], outputs);
    } else if constexpr (is_number) {
      require_targets(batch, static_cast<std::size_t>(outputs.k()) * places(outputs));
      return batch.targets[sample];
    } else if constexpr (is_vector) {
      require_targets(batch, static_cast<std::size_t>(outputs.k()) * places(outputs));
      return ::dlib::mat(batch.targets.data() + sample * each, static_cast<long>(each), 1);
    } else if constexpr (is_class_map) {
      return class_map(batch, sample, outputs);
    } else {
      fail(ErrorKind::argument, "dlib: labels of this loss layer are your own; give Task::label");
    }
  }

  static ::dlib::matrix<std::uint16_t> class_map(const Batch& batch, std::size_t sample,
                                                 const ::dlib::tensor& outputs) {
    const std::size_t each = batch.target_size();
    require(batch.targets.empty() && each == places(outputs), ErrorKind::argument,
            "dlib: {} {} a sample, the net has outputs at {} places; a label for each is required",
            each, batch.targets.empty() ? "labels" : "float targets", places(outputs));
    ::dlib::matrix<std::uint16_t> labels(outputs.nr(), outputs.nc());
    for (std::size_t i = 0; i < each; ++i) {
      const auto place = static_cast<long>(i);
      labels(place / outputs.nc(), place % outputs.nc()) =
          static_cast<std::uint16_t>(checked_label(batch.labels[sample * each + i], outputs));
    }
    return labels;
  }

  static Measure label_share(const ::dlib::tensor& outputs, const Batch& batch) {
    const std::size_t each = places(outputs);
    double hits = 0;
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      const auto found = static_cast<std::int32_t>(best_of(outputs, i / each, i % each));
      hits += found == batch.labels[i] ? 1 : 0;
    }
    return {"accuracy", Measure::Form::share, {hits, static_cast<double>(batch.labels.size())}};
  }

  static std::vector<Measure> distances(const ::dlib::tensor& outputs, const Batch& batch) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      const double apart = double{outputs.host()[i]} - double{batch.targets[i]};
      sum += std::fabs(apart);
      squares += apart * apart;
    }
    const auto count = static_cast<double>(batch.targets.size());
    return {{"mae", Measure::Form::mean, {sum, count}},
            {"rmse", Measure::Form::root_of_mean, {squares, count}}};
  }
};

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
    std::ranges::copy(batch.inputs, inputs_.host_write_only());
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
