// Turns the layers of a model into works, in order, and then their gradients in reverse order.
#pragma once

#include <fast/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "nn/cuda/program.hpp"
#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

// Memory for the values of a program. Works reuse the memory of earlier works.

/// Works run in the order in which they were added. Memory is therefore free for reuse as soon as,
/// while the program is built, no value refers to it.
class ProgramMemory {
 public:
  explicit ProgramMemory(std::function<std::byte*(std::size_t)> allocate)
      : allocate_(std::move(allocate)), free_(std::make_shared<Free>()) {}

  template <class T>
  std::shared_ptr<T> take(std::int64_t elements) {
    const std::size_t wanted = static_cast<std::size_t>(elements) * sizeof(T);
    std::size_t size_bytes = wanted;
    std::byte* memory = nullptr;
    // A much larger block is kept for a larger request.
    const auto found = free_->lower_bound(wanted);
    if (found != free_->end() && found->first <= 4 * wanted) {
      size_bytes = found->first;
      memory = found->second;
      free_->erase(found);
    } else {
      memory = allocate_(size_bytes);
    }
    return {reinterpret_cast<T*>(memory),
            [free = free_, size_bytes, memory](T*) { free->emplace(size_bytes, memory); }};
  }

 private:
  using Free = std::multimap<std::size_t, std::byte*>;
  std::function<std::byte*(std::size_t)> allocate_;
  std::shared_ptr<Free> free_;
};

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
