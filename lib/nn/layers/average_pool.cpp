#include <algorithm>

#include "nn/layers/pool.hpp"
#include "nn/onnx/graph.hpp"

namespace fast::nn {
namespace {

template <class T>
class WindowMeanLayer final : public Layer<T> {
 public:
  WindowMeanLayer(Index channels, const PoolSize& size) : channels_(channels), size_(size) {}

  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    const T share = share_of_one();
    const Index area = size_.height * size_.width * lanes<T>;
    for (Index plane = 0; plane < planes(pass.count); ++plane, x += area)
      for (Index row = 0; row < size_.out_height; ++row)
        for (Index column = 0; column < size_.out_width; ++column, y += lanes<T>) {
          std::fill_n(y, lanes<T>, T{0});
          each_place(row, column, [&](Index place) {
            for (Index lane = 0; lane < lanes<T>; ++lane) y[lane] += x[place + lane];
          });
          for (Index lane = 0; lane < lanes<T>; ++lane) y[lane] *= share;
        }
  }

  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx == nullptr) return;
    const T share = share_of_one();
    const Index area = size_.height * size_.width * lanes<T>;
    std::fill_n(dx, planes(count) * area, T{0});
    for (Index plane = 0; plane < planes(count); ++plane, dx += area)
      for (Index row = 0; row < size_.out_height; ++row)
        for (Index column = 0; column < size_.out_width; ++column, dy += lanes<T>)
          each_place(row, column, [&](Index place) {
            for (Index lane = 0; lane < lanes<T>; ++lane) dx[place + lane] += share * dy[lane];
          });
  }

 private:
  T share_of_one() const { return T{1} / static_cast<T>(size_.size * size_.size); }
  Index planes(Index count) const { return block_count<T>(count) * channels_; }

  /// The places of a window that lie in the image, as offsets of their first lane.
  template <class Visit>
  void each_place(Index row, Index column, const Visit& visit) const {
    const auto begin = [&](Index window) {
      return std::max<Index>(0, window * size_.stride - size_.padding);
    };
    const auto end = [&](Index window, Index length) {
      return std::min(length, window * size_.stride - size_.padding + size_.size);
    };
    for (Index i = begin(row); i < end(row, size_.height); ++i)
      for (Index j = begin(column); j < end(column, size_.width); ++j)
        visit((i * size_.width + j) * lanes<T>);
  }

  Index channels_;
  PoolSize size_;
};

struct WindowMeanKind : PoolKind<AveragePool> {
  static std::string describe(const AveragePool& pool) { return described("average", pool); }
  template <class T>
  static std::unique_ptr<Layer<T>> make(const AveragePool& pool, const Shape& in) {
    return std::make_unique<WindowMeanLayer<T>>(in[0], size_of(pool, in));
  }
  static std::string to_onnx(const AveragePool& pool, const std::string& in, OnnxGraph& graph) {
    std::vector<onnx::Message> attributes = onnx::window(pool.size, pool.stride, pool.padding);
    attributes.push_back(onnx::attribute("count_include_pad", std::int64_t{1}));
    return graph.node("AveragePool", {in}, attributes);
  }
};

}  // namespace

const LayerEntry entries::average_pool = entry_for<WindowMeanKind>();

}  // namespace fast::nn
