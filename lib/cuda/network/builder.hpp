// Turns the layers of a model into works, in order, and then their gradients in reverse order.
#pragma once

#include <fast/core/error.hpp>
#include <string_view>
#include <utility>

#include "cuda/layers/shared.hpp"
#include "cuda/network/program.hpp"
#include "cuda/network/program_memory.hpp"

namespace fast::cuda {

/// Throws Error(argument) unless layer `Spec` has a part.
template <class Spec>
void require_gpu_part(std::string_view layer) {
  require(HasGpuPart<Spec>, ErrorKind::argument,
          "cuda: layer \"{}\" has no GPU part; run the model on the CPU, or add it "
          "(docs/extending/layer.md)",
          layer);
}

/// V is the type of values between layers.
template <class V>
class Builder {
 public:
  Builder(Index samples, bool training, const ModelMemory& model, const Allocate& allocate)
      : samples_(samples), training_(training), model_(model), memory_(allocate) {}

  Program build(const nn::ModelSpec& spec);

  Index samples() const { return samples_; }
  bool training() const { return training_; }

  /// Memory that is free for later works as soon as nothing refers to it.
  template <class T>
  std::shared_ptr<T> take(Index elements) {
    return memory_.take<T>(elements);
  }
  Values<V> values(Index elements) { return take<V>(elements); }
  Sums sums(Index elements) { return take<float>(elements); }

  /// The place of the next parameters in the flat vector. Their gradients have the same place.
  Index parameters(Index count) { return std::exchange(parameter_, parameter_ + count); }
  const float* weights(Index place) const { return model_.parameters + place; }
  float* gradients(Index place) const { return model_.gradients + place; }
  /// The next buffers.
  float* buffers(Index count) { return model_.buffers + std::exchange(buffer_, buffer_ + count); }
  /// A number for each sample, by which layers choose at random in training.
  std::shared_ptr<std::uint64_t> noise();
  /// The place of the layer that is added, by which its choices differ from those of others.
  Index place() const { return place_; }
  /// Counts the model's recurrent layers.
  Index next_recurrence() { return recurrences_++; }

  void add(const Work& work) { works_.push_back(work); }
  /// The work added last if it is a W, else null: a layer may extend it instead of adding another.
  template <class W>
  W* last() {
    return works_.empty() ? nullptr : std::get_if<W>(&works_.back());
  }

  /// For layers that contain layers. `list` is the list's place (nn/noise.hpp).
  Chain<V> through(const std::vector<nn::LayerSpec>& layers, const Shape& input, Values<V> x,
                   Index list);
  Values<V> back(const Chain<V>& chain, Values<V> dy, bool wanted);

  /// States that the last work has made these gradients, and that only the next layer of the
  /// backward pass reads them.
  void pass_on(const Values<V>& gradients) { passed_on_ = gradients.get(); }
  /// Whether pass_on() has stated it for these gradients. Forgets it.
  bool was_passed_on(const Values<V>& gradients) {
    return std::exchange(passed_on_, nullptr) == gradients.get();
  }

 private:
  Made<V> add_layer(const nn::LayerSpec& layer, const Ends& ends, const Values<V>& x, bool relu);

  Index samples_;
  bool training_;
  ModelMemory model_;
  ProgramMemory memory_;
  std::vector<Work> works_;
  const V* passed_on_ = nullptr;
  Index parameter_ = 0, buffer_ = 0, recurrences_ = 0, place_ = 0;
  DrawNoise drawn_ = {};  ///< what noise() adds
  std::shared_ptr<std::uint64_t> noise_;
};

}  // namespace fast::cuda
