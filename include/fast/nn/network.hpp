// A model in host memory: parameters, gradients and activations of a ModelSpec.
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
/// nn::parameters(spec) and without gaps. Buffers lie in a third vector, in the order of
/// nn::buffers(spec). All work runs on the calling thread. The same seed, batches and build give
/// the same bits. Not thread-safe. T is float or double.
template <class T>
class Network {
 public:
  /// Draws initial weights (He et al. 2015, arXiv 1502.01852): normal with variance 2 / fan-in, and
  /// 1 / fan-in in the last layer, which no ReLU follows. Biases are 0 and scales 1. A seed gives
  /// the same weights on every platform. Throws Error(argument) if the layers do not fit each
  /// other. Throws Error(resource) if the library was built for another processor.
  Network(ModelSpec spec, std::uint64_t seed);
  /// Uses existing parameters, as after set_parameter_base().
  Network(ModelSpec spec, T* parameters);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const ModelSpec& spec() const { return spec_; }
  std::int64_t classes() const { return shapes_.back().back(); }  ///< outputs, of a sequence a step
  const Shape& output() const { return shapes_.back(); }          ///< of one sample
  std::size_t parameter_count() const { return parameter_count_; }

  std::span<T> parameters() { return {base_, parameter_count_}; }
  std::span<T> gradients() { return gradients_.as<T>(); }  ///< of the last loss_and_gradients()
  std::span<T> buffers() { return buffers_.as<T>(); }
  std::vector<TensorView> parameter_views();
  std::vector<TensorView> buffer_views();
  std::vector<TensorView> gradient_views();

  /// Uses the parameters at `base` from now on: parameter_count() initialized values that must
  /// outlive this use. Earlier views still point to the old place. Throws Error(argument) on null.
  void set_parameter_base(T* base);

  /// Throws Error(argument) if the shape, the sizes or the labels of a batch do not fit. The three
  /// functions below do this check too.
  void check(const Batch& batch) const;

  /// Evaluation: the outputs [count x outputs], row-major, valid until the next call. A batch has
  /// at least one sample.
  std::span<const T> forward(const Batch& batch);

  /// Training: the mean loss of the batch, and its gradients. Updates the running statistics.
  double loss_and_gradients(const Batch& batch);
  /// Correct labels in the last loss_and_gradients(), before its gradients are used.
  std::size_t correct() const { return correct_; }

  /// The sum of losses over samples, the number of correct labels, and measures.
  LossResult evaluate(const Batch& batch);

 private:
  void initialize(std::uint64_t seed);
  const T* load(const Batch& batch);
  const std::uint64_t* noise_of(const Batch& batch);
  std::span<const T> forward(const Batch& batch, bool training);

  ModelSpec spec_;
  std::vector<Shape> shapes_;
  std::size_t parameter_count_ = 0;
  AlignedBuffer parameters_, gradients_, buffers_;
  T* base_ = nullptr;
  std::size_t correct_ = 0;
  bool has_noise_ = false;            ///< some layer chooses at random
  std::vector<std::uint64_t> noise_;  ///< by sample
  std::unique_ptr<Sequence<T>> layers_;
  AlignedBuffer input_, grads_;  ///< gradients of the loss with respect to the logits
};

extern template class Network<float>;
extern template class Network<double>;

}  // namespace fast::nn
