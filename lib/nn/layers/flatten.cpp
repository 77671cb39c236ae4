#include <algorithm>

#include "nn/layers/layer_entry.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

/// Converts blocks of images to vectors.
template <class T>
class FlattenLayer final : public Layer<T> {
 public:
  explicit FlattenLayer(const Shape& input) : elements_(elements_of(input)) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    from_blocks(x, y, pass.count, elements_);
  }
  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) to_blocks(dy, dx, count, elements_);
  }

 private:
  Index elements_;
};

/// A sequence has the same layout as its vector.
template <class T>
class IdentityLayer final : public Layer<T> {
 public:
  explicit IdentityLayer(const Shape& shape) : shape_(shape) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    if (x != y) std::copy_n(x, stored_elements<T>(shape_, pass.count), y);
  }
  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx != nullptr && dx != dy) std::copy_n(dy, stored_elements<T>(shape_, count), dx);
  }
  bool in_place() const override { return true; }

 private:
  Shape shape_;
};

struct FlattenKind {
  using Spec = Flatten;

  static std::string describe(const Flatten&) { return "flatten"; }
  static Shape output(const Flatten&, const Shape& in) { return {elements_of(in)}; }
  template <class T>
  static std::unique_ptr<Layer<T>> make(const Flatten&, const Shape& in) {
    if (in.size() < 3) return std::make_unique<IdentityLayer<T>>(in);
    return std::make_unique<FlattenLayer<T>>(in);
  }
  static std::string to_onnx(const Flatten&, const std::string& in, OnnxGraph& graph) {
    return graph.flattened(in);
  }
};

}  // namespace

const LayerEntry entries::flatten = entry_for<FlattenKind>();

}  // namespace fast::nn
