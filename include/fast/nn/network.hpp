// A model at work: parameters, gradients and activations of a ModelSpec in host memory.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/nn/loss.hpp>
#include <fast/nn/model_spec.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace fast::nn {

template <class T>
class Sequence;

/// All parameters lie in one flat vector, all gradients in another, in the order of
/// nn::parameters(spec), without gaps; buffers in a third, in that of nn::buffers(spec). Runs on
/// the calling thread alone; the same seed, batches and build give the same bits. One thread at a
/// time. T is float or double.
template <class T>
class Network {
 public:
  /// Weights by He et al. 2015 (arXiv 1502.01852): normal, variance 2 / fan-in, 1 / fan-in in the
  /// last layer, which no ReLU follows; biases 0, scales 1; the same for a seed on every platform.
  /// Throws Error(argument) when the spec does not hold together, and Error(resource) when the
  /// library was built for another processor.
  Network(ModelSpec spec, std::uint64_t seed);
  /// On parameters that are there already, as after set_parameter_base().
  Network(ModelSpec spec, T* parameters);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const ModelSpec& spec() const { return spec_; }
  std::int64_t classes() const { return shapes_.back()[0]; }
  std::size_t parameter_count() const { return parameter_count_; }

  std::span<T> parameters() { return {base_, parameter_count_}; }
  std::span<T> gradients() { return gradients_.as<T>(); }  ///< of the last loss_and_gradients()
  std::span<T> buffers() { return buffers_.as<T>(); }
  std::vector<TensorView> parameter_views();
  std::vector<TensorView> buffer_views();
  std::vector<TensorView> gradient_views();

  /// From now on the parameters are those at `base` (parameter_count() values that outlive their
  /// use here; the caller has written them). Views handed out before still name the old place.
  /// Throws Error(argument) on null.
  void set_parameter_base(T* base);

  /// What the three below refuse, in a batch.
  void check(const Batch& batch) const;

  /// In evaluation mode: logits [count x classes], row-major, valid until the next call. A batch
  /// has one sample at least; where the model takes vectors, images of as many values will do.
  /// Throws Error(argument) when shape, sizes or labels do not fit, in all three.
  std::span<const T> forward(const Batch& batch);

  /// The mean softmax cross-entropy over the batch, in training mode, and its gradients. Moves the
  /// running statistics.
  double loss_and_gradients(const Batch& batch);

  /// Sum of losses and count of correct samples.
  LossResult evaluate(const Batch& batch);

 private:
  void initialize(std::uint64_t seed);
  const T* load(const Batch& batch);
  std::span<const T> forward(const Batch& batch, bool training);

  ModelSpec spec_;
  std::vector<Shape> shapes_;
  std::size_t parameter_count_ = 0;
  AlignedBuffer parameters_, gradients_, buffers_;
  T* base_ = nullptr;
  std::unique_ptr<Sequence<T>> layers_;
  AlignedBuffer input_, grads_;  ///< gradients of the loss with respect to the logits
};

extern template class Network<float>;
extern template class Network<double>;

}  // namespace fast::nn
