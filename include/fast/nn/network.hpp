// A model at work: parameters, gradients and activations of a ModelSpec in host memory.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/nn/loss.hpp>
#include <fast/nn/model_spec.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace fast::nn {

template <class T>
class Layer;

/// All parameters lie in one flat vector, all gradients in another, in the order of
/// nn::parameters(spec), without gaps. Runs on the calling thread alone; the same seed, batches and
/// build give the same bits. One thread at a time. T is float or double.
template <class T>
class Network {
 public:
  /// Weights by He et al. 2015 (arXiv 1502.01852): normal, variance 2 / fan-in, 1 / fan-in in the
  /// last layer, which no ReLU follows; biases 0; the same for a seed on every platform. Throws
  /// Error(argument) when the spec does not hold together, and Error(resource) when the library was
  /// built for another processor.
  Network(ModelSpec spec, std::uint64_t seed);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const ModelSpec& spec() const { return spec_; }
  std::int64_t classes() const { return shapes_.back()[0]; }
  std::size_t parameter_count() const { return parameter_count_; }

  std::span<T> parameters() { return {base_, parameter_count_}; }
  std::span<T> gradients() { return gradients_.as<T>(); }  ///< of the last loss_and_gradients()
  std::vector<TensorView> parameter_views();
  std::vector<TensorView> gradient_views();

  /// From now on the parameters are those at `base` (parameter_count() values that outlive their
  /// use here; the caller has written them). Views handed out before still name the old place.
  /// Throws Error(argument) on null.
  void set_parameter_base(T* base);

  /// Logits [count x classes], row-major, valid until the next call. A batch has one sample at
  /// least; where the model takes vectors, images of as many values will do. Throws Error(argument)
  /// when shape, sizes or labels do not fit, in all three.
  std::span<const T> forward(const Batch& batch);

  /// The mean softmax cross-entropy over the batch, and its gradients.
  double loss_and_gradients(const Batch& batch);

  /// Sum of losses and count of correct samples.
  LossResult evaluate(const Batch& batch);

 private:
  struct Stage {
    std::unique_ptr<Layer<T>> layer;
    std::size_t offset = 0;  ///< of its first parameter
    AlignedBuffer output;    ///< empty when it works in place
  };

  void initialize(std::uint64_t seed);
  void check(const Batch& batch) const;
  void reserve(std::int64_t count);
  T* load(const Batch& batch);
  void backward(std::int64_t count);
  std::vector<TensorView> views(T* base) const;

  ModelSpec spec_;
  std::vector<Shape> shapes_;
  std::size_t parameter_count_ = 0;
  std::size_t first_trained_ = 0;  ///< the first stage with parameters; no gradient goes further
  AlignedBuffer parameters_, gradients_;
  T* base_ = nullptr;
  std::vector<Stage> stages_;
  AlignedBuffer input_;
  std::array<AlignedBuffer, 2> slopes_;  ///< gradients of outputs, taken in turns
  std::vector<T*> values_;               ///< input and outputs of the stages, of the last forward()
  std::int64_t capacity_ = 0;
};

extern template class Network<float>;
extern template class Network<double>;

}  // namespace fast::nn
