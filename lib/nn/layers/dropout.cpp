#include <algorithm>
#include <vector>

#include "nn/layers/layer_entry.hpp"
#include "nn/noise.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

/// The mask is a function of the pass's noise, the sample and the place in it. It is computed again
/// in the backward pass.
template <class T>
class DropoutLayer final : public Layer<T> {
 public:
  DropoutLayer(const Dropout& spec, const Shape& shape)
      : mask_(spec.rate), shape_(shape), size_(elements_of(shape)) {}

  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    if (!pass.training) {
      if (x != y) std::copy_n(x, stored_elements<T>(shape_, pass.count), y);
      return;
    }
    seeds_.resize(static_cast<std::size_t>(pass.count));
    for (std::size_t s = 0; s < seeds_.size(); ++s)
      seeds_[s] = DropoutMask::seed(pass.noise == nullptr ? s : pass.noise[s], pass.place);
    mask(x, y, pass.count);
  }
  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) mask(dy, dx, count);
  }

 private:
  void mask(const T* from, T* to, Index count) const {
    const bool image = shape_.size() == 3;
    for (Index s = 0; s < count; ++s) {
      // Samples lie side by side in a block of images.
      const Index first = image ? s / lanes<T> * lanes<T> * size_ + s % lanes<T> : s * size_;
      const Index step = image ? lanes<T> : 1;
      const std::uint64_t seed = seeds_[static_cast<std::size_t>(s)];
      for (Index e = 0; e < size_; ++e) {
        const Index at = first + e * step;
        to[at] = mask_.masked(from[at], seed, e);
      }
    }
    if (image) clear_rest(to, count);
  }
  /// Lanes of the last block without a sample.
  void clear_rest(T* to, Index count) const {
    for (Index s = count; s < block_count<T>(count) * lanes<T>; ++s)
      for (Index e = 0; e < size_; ++e)
        to[s / lanes<T> * lanes<T> * size_ + e * lanes<T> + s % lanes<T>] = T{0};
  }

  DropoutMask mask_;
  Shape shape_;
  Index size_;
  std::vector<std::uint64_t> seeds_;  ///< of the last training pass, by sample
};

struct DropoutKind : KindOf<Dropout, DropoutLayer> {
  static void keys(Dropout& dropout, Keys& keys) { keys.optional("rate", dropout.rate); }
  static std::string describe(const Dropout& dropout) {
    return fmt::format("dropout {}", dropout.rate);
  }
  static Shape output(const Dropout& dropout, const Shape& in) {
    demand(dropout.rate >= 0 && dropout.rate < 1, "rate {} is not in [0, 1)", dropout.rate);
    return in;
  }
  /// A model in evaluation mode.
  static std::string to_onnx(const Dropout&, const std::string& in, OnnxGraph&) { return in; }
};

}  // namespace

const LayerEntry entries::dropout = entry_for<DropoutKind>();

}  // namespace fast::nn
