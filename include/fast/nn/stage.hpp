// A part of a model in host memory, for model parallelism: consecutive layers whose neighbors are
// on other ranks. docs/how-to/model-parallel.md shows how to train with it.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/nn/loss.hpp>
#include <fast/nn/model_spec.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace fast::nn {

using fast::part_of;  // for micro-batches

/// Layers [first, last) of ModelSpec::layers.
struct LayerRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The stages of a model that is cut after so many layers: one more than there are cuts.
/// Throws Error(argument) unless the cuts increase and lie in 1..layers - 1, or if a stage would
/// have no parameters.
std::vector<LayerRange> stages_of(const ModelSpec& model, std::span<const std::size_t> cuts);

/// Consecutive layers of a model. Names, shapes and initial values of the tensors are those that
/// these layers have in a Network of the whole model with the same seed. One stage after the other
/// then computes what the Network computes, bit for bit. Dropout is an exception: a stage draws
/// from its own parameters and inputs.
///
/// Values between stages are row-major [samples x elements], images as C×H×W. A stage holds the
/// values of several micro-batches, each between its forward and its backward pass. Their numbers
/// begin at 0. All work runs on the calling thread. Not thread-safe. T is float or double.
template <class T>
class Stage {
 public:
  /// `micro_batches` of them may be between their two passes. Throws Error(argument) as Network
  /// does, and on a range without layers or without parameters.
  Stage(ModelSpec model, LayerRange layers, std::uint64_t seed, std::size_t micro_batches = 1);
  Stage(Stage&&) noexcept;
  Stage& operator=(Stage&&) noexcept;
  ~Stage();

  const ModelSpec& model() const { return model_; }
  const Shape& input() const { return input_; }    ///< of one sample
  const Shape& output() const { return output_; }  ///< of one sample
  std::size_t input_size() const;                  ///< product of the shape
  std::size_t output_size() const;
  bool is_first() const { return layers_.first == 0; }
  bool is_last() const { return layers_.last == model_.layers.size(); }

  std::span<T> parameters() { return {at_offset(parameters_), count_}; }
  std::span<T> gradients() { return {at_offset(gradients_), count_}; }
  std::vector<TensorView> parameter_views();
  std::vector<TensorView> buffer_views();  ///< running statistics

  /// The outputs of `inputs`, which hold whole samples, valid until the next call for this
  /// micro-batch. In training, it then waits for backward(). Evaluation changes no buffers.
  std::span<const T> forward(std::size_t micro_batch, std::span<const T> inputs,
                             bool training = true);

  /// Returns the loss of this micro-batch; only the last stage has one. `batch` has its labels or
  /// targets. Throws Error(argument) if they do not fit.
  LossResult loss(std::size_t micro_batch, const Batch& batch);
  /// The gradients of the mean loss of the last loss() with respect to the outputs.
  std::span<const T> loss_gradients() const { return loss_gradients_; }

  /// The next backward() begins new gradients.
  void begin_gradients() { fresh_ = true; }
  /// Adds `share` times the gradients of this micro-batch to gradients().
  /// `output_gradients` are those of the outputs. Returns those of the inputs, valid until the next
  /// backward(), or nothing in the first stage.
  std::span<const T> backward(std::size_t micro_batch, std::span<const T> output_gradients,
                              double share);

 private:
  struct MicroBatch;

  T* at_offset(AlignedBuffer& buffer) { return buffer.as<T>().data() + shift_; }
  MicroBatch& at(std::size_t number);
  const T* load(MicroBatch& micro_batch, std::span<const T> inputs) const;

  ModelSpec model_;
  LayerRange layers_;
  Shape input_, output_;
  std::size_t count_ = 0;  ///< of parameters
  std::size_t shift_ = 0;  ///< parameters are aligned as in the whole model: sums have one order
  bool has_noise_ = false;
  bool fresh_ = true;
  AlignedBuffer parameters_, gradients_, part_, buffers_;
  AlignedBuffer stored_gradients_, input_gradients_, rows_;
  AlignedBuffer loss_memory_;
  std::span<T> loss_gradients_;
  std::vector<std::unique_ptr<MicroBatch>> micro_batches_;
};

extern template class Stage<float>;
extern template class Stage<double>;

}  // namespace fast::nn
