#include "nn/layers/pool.hpp"
#include "nn/onnx/graph.hpp"

namespace fast::nn {
namespace {

template <class T>
class MaxPoolLayer final : public Layer<T> {
 public:
  MaxPoolLayer(Index channels, const PoolSize& size) : channels_(channels), size_(size) {}

  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    max_pool_forward(size_, x, y, planes(pass.count));
  }
  void backward(const T*, T*, const T* x, const T* y, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) max_pool_backward(size_, x, y, dy, dx, planes(count));
  }

 private:
  Index planes(Index count) const { return block_count<T>(count) * channels_; }
  Index channels_;
  PoolSize size_;
};

struct MaxPoolKind : PoolKind<MaxPool> {
  static std::string describe(const MaxPool& pool) { return described("max", pool); }
  template <class T>
  static std::unique_ptr<Layer<T>> make(const MaxPool& pool, const Shape& in) {
    return std::make_unique<MaxPoolLayer<T>>(in[0], size_of(pool, in));
  }
  static std::string to_onnx(const MaxPool& pool, const std::string& in, OnnxGraph& graph) {
    return graph.node("MaxPool", {in}, onnx::window(pool.size, pool.stride, pool.padding));
  }
};

}  // namespace

const LayerEntry entries::max_pool = entry_for<MaxPoolKind>();

}  // namespace fast::nn
