// Turns a model's layers into works, one layer after the other; gradients go back the same way.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>

#include "cuda/network/program.hpp"
#include "cuda/network/program_memory.hpp"

namespace fast::cuda {

using nn::Shape;

inline Index elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}
inline Index area_of(const Shape& image) { return image[1] * image[2]; }

/// V is the type of values between layers.
template <class V>
class Builder {
 public:
  Builder(Index samples, bool training, const ModelMemory& model, const Allocate& allocate)
      : samples_(samples), training_(training), model_(model), memory_(allocate) {}

  Program build(const nn::ModelSpec& spec);

 private:
  using Values = std::shared_ptr<V>;
  using Sums = std::shared_ptr<float>;
  /// From the gradients of a layer's outputs to those of its inputs; null unless they are wanted.
  using Backward = std::function<Values(const Values& dy, bool wanted)>;

  struct Stage {
    Backward backward;
    bool trained;
  };
  struct Made {
    Values y;
    Backward backward;
    bool trained = false;
  };
  struct Chain {
    Values y;
    std::vector<Stage> stages;
    bool trained() const {
      return std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return s.trained; });
    }
  };

  Chain through(const std::vector<nn::LayerSpec>& layers, const Shape& input, Values x);
  Values back(const Chain& chain, Values dy, bool wanted);

  Made layer(const nn::Dense& dense, const Shape& in, const Values& x, bool relu);
  Made layer(const nn::Conv2d& conv, const Shape& in, const Values& x, bool relu);
  Made layer(const nn::BatchNorm& norm, const Shape& in, const Values& x, bool relu);
  Made layer(const nn::GroupNorm& norm, const Shape& in, const Values& x, bool relu);
  Made layer(const nn::Relu&, const Shape& in, const Values& x, bool);
  Made layer(const nn::MaxPool& pool, const Shape& in, const Values& x, bool);
  Made layer(const nn::Flatten&, const Shape& in, const Values& x, bool);
  Made layer(const nn::GlobalAveragePool&, const Shape& in, const Values& x, bool);
  Made layer(const nn::Lstm& lstm, const Shape& in, const Values& x, bool);
  Made layer(const nn::Residual& residual, const Shape& in, const Values& x, bool relu);

  Values values(Index elements) { return memory_.take<V>(elements); }
  Sums sums(Index elements) { return memory_.take<float>(elements); }
  /// The next parameters of the flat vector; gradients lie at the same places.
  Index parameters(Index count) { return std::exchange(parameter_, parameter_ + count); }
  const float* weights(Index place) const { return model_.parameters + place; }
  float* gradients(Index place) const { return model_.gradients + place; }
  void add(const Work& work) { works_.push_back(work); }
  void add_column_sums(const V* x, Index rows, Index columns, float* sums);
  /// What is left of gradients before a ReLU that gave y; dy itself without one.
  Values rectified(const Values& y, const Values& dy, Index count, bool relu) {
    if (!relu) return dy;
    Values grads = values(count);
    add(RectifyGradients<V>{y.get(), dy.get(), grads.get(), count});
    return grads;
  }
  /// a + b, joined to the normalization that has just made one of them for nobody else.
  Values added(const Values& a, const Values& b, Index count, bool relu);
  /// rectified(), joined to the sum that has just made dy for nobody else.
  Values rectified_sum(const Values& y, const Values& dy, Index count, bool relu);
  template <class From>
  Values swapped(const From* from, Index outer, Index rows, Index columns) {
    Values to = values(outer * rows * columns);
    add(SwapLast<From, V>{from, to.get(), outer, rows, columns});
    return to;
  }
  template <class From>
  Values converted(const From* from, Index count) {
    return swapped(from, 1, 1, count);
  }

  static constexpr DType type = dtype_of_t<V>::value;
  static constexpr bool exact = std::is_same_v<V, float>;  // parameters serve as they are

  Index samples_;
  bool training_;
  ModelMemory model_;
  ProgramMemory memory_;
  std::vector<Work> works_;
  const V* own_grads_ = nullptr;  // what the last residual block has handed back
  Index parameter_ = 0, buffer_ = 0, recurrences_ = 0;
};

}  // namespace fast::cuda
