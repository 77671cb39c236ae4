#include <Eigen/Core>
#include <fast/core/error.hpp>
#include <fast/nn/network.hpp>

#include "backends/registry.hpp"

namespace backends {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<const Matrix>;

struct Layer {
  Matrix weights, biases, weight_gradients, bias_gradients;
};

fast::TensorView view(const std::string& name, Matrix& matrix) {
  return fast::view_of(name, std::span(matrix.data(), static_cast<std::size_t>(matrix.size())));
}

/// A multilayer perceptron with plain SGD.
class Perceptron final : public fast::Backend {
 public:
  /// Starts at nn's weights: a weight matrix [units x inputs] and a bias vector for each layer.
  explicit Perceptron(const std::vector<fast::TensorView>& initial) : layers_(initial.size() / 2) {
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      const fast::TensorView &weights = initial[2 * k], &biases = initial[2 * k + 1];
      const Eigen::Index units = weights.shape[0], inputs = weights.shape[1];
      layers_[k].weights = Rows(static_cast<const float*>(weights.data), units, inputs);
      layers_[k].biases = Rows(static_cast<const float*>(biases.data), 1, units);
    }
  }

  std::string name() const override { return "eigen"; }

  std::vector<fast::TensorView> parameters() override {
    return views(&Layer::weights, &Layer::biases);
  }

  double train(const fast::Batch& batch, const fast::GradientHook& hook) override {
    forward(batch);
    const double loss = evaluation_of(batch).loss_sum / static_cast<double>(batch.count());
    backward(batch);
    if (hook) hook(views(&Layer::weight_gradients, &Layer::bias_gradients));
    for (Layer& layer : layers_) {
      layer.weights -= rate_ * layer.weight_gradients;
      layer.biases -= rate_ * layer.bias_gradients;
    }
    return loss;
  }

  fast::Evaluation evaluate(const fast::Batch& batch) override {
    forward(batch);
    return evaluation_of(batch);
  }

  void set_learning_rate(double rate) override { rate_ = static_cast<float>(rate); }

 private:
  std::vector<fast::TensorView> views(Matrix Layer::*weights, Matrix Layer::*biases) {
    std::vector<fast::TensorView> all;
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      const std::string name = "fc" + std::to_string(k + 1);
      all.push_back(view(name + ".weight", layers_[k].*weights));
      all.push_back(view(name + ".bias", layers_[k].*biases));
    }
    return all;
  }

  void check(const fast::Batch& batch) const {
    const auto inputs = static_cast<std::size_t>(layers_.front().weights.cols());
    const Eigen::Index classes = layers_.back().biases.size();
    fast::require(batch.count() > 0 && batch.inputs.size() == batch.count() * inputs,
                  fast::ErrorKind::argument, "eigen: {} values of {} samples; {} each are required",
                  batch.inputs.size(), batch.count(), inputs);
    for (const std::int32_t label : batch.labels)
      fast::require(label >= 0 && label < classes, fast::ErrorKind::argument,
                    "eigen: label {}; 0..{} are required", label, classes - 1);
  }

  /// Fills values_: the inputs, each layer's outputs and, last, the probabilities.
  void forward(const fast::Batch& batch) {
    check(batch);
    values_ = {Rows(batch.inputs.data(), static_cast<Eigen::Index>(batch.count()),
                    layers_.front().weights.cols())};
    for (const Layer& layer : layers_) {
      if (values_.size() > 1) values_.back() = values_.back().cwiseMax(0);
      Matrix outputs = values_.back() * layer.weights.transpose();
      outputs.rowwise() += layer.biases.row(0);
      values_.push_back(std::move(outputs));
    }
    Matrix& last = values_.back();
    last.colwise() -= last.rowwise().maxCoeff().eval();
    last = last.array().exp();
    last.array().colwise() /= last.rowwise().sum().array().eval();
  }

  void backward(const fast::Batch& batch) {
    Matrix errors = values_.back();
    for (Eigen::Index i = 0; i < errors.rows(); ++i)
      errors(i, batch.labels[static_cast<std::size_t>(i)]) -= 1;
    errors /= static_cast<float>(batch.count());
    for (std::size_t k = layers_.size(); k-- > 0;) {
      layers_[k].weight_gradients = errors.transpose() * values_[k];
      layers_[k].bias_gradients = errors.colwise().sum();
      errors = ((errors * layers_[k].weights).array() * (values_[k].array() > 0).cast<float>());
    }
  }

  fast::Evaluation evaluation_of(const fast::Batch& batch) const {
    const Matrix& found = values_.back();
    fast::Evaluation result;
    for (Eigen::Index i = 0; i < found.rows(); ++i) {
      const std::int32_t label = batch.labels[static_cast<std::size_t>(i)];
      Eigen::Index best = 0;
      found.row(i).maxCoeff(&best);
      result.loss_sum -= std::log(std::max(found(i, label), 1e-30F));
      result.correct += best == label ? 1 : 0;
    }
    return result;
  }

  std::vector<Layer> layers_;
  std::vector<Matrix> values_;
  float rate_ = 0.05F;
};

}  // namespace

const BackendEntry entries::eigen{
    [](const fast::nn::ModelSpec& spec, std::uint64_t seed,
       const fast::nn::BackendOptions&) -> std::unique_ptr<fast::Backend> {
      fast::require(spec.name.starts_with("mlp"), fast::ErrorKind::argument,
                    "--backend eigen: it has no model {}; choose --model mlp or another backend",
                    spec.name);
      fast::nn::Network<float> initial(spec, seed);
      return std::make_unique<Perceptron>(initial.parameter_views());
    }};

}  // namespace backends
