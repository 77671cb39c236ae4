#include "nn/layers/layer_entry.hpp"

#include <algorithm>

#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {

// What pooling layers have in common.

namespace {

template <class Pool>
Shape output_of(const Pool& pool, const Shape& in) {
  const Window window{pool.size, pool.stride, pool.padding};
  window.demand_fit(in);
  demand(2 * pool.padding <= pool.size, "padding must be at most half of the window");
  return {in[0], window.along(in[1]), window.along(in[2])};
}

template <class Pool>
PoolSize size_of(const Pool& pool, const Shape& in) {
  const Shape out = output_of(pool, in);
  return {in[1], in[2], out[1], out[2], pool.size, pool.stride, pool.padding};
}

/// The common part of their rows. A layer adds `describe` and `to_onnx`.
template <class Spec, template <class> class OnCpu>
struct PoolKind : KindOf<Spec, OnCpu> {
  static void keys(Spec& pool, Keys& keys) {
    keys.optional("size", pool.size);
    keys.optional("stride", pool.stride);
    keys.optional("padding", pool.padding);
  }
  static Shape output(const Spec& pool, const Shape& in) { return output_of(pool, in); }
  static std::string described(const char* name, const Spec& pool) {
    return fmt::format("{} pool {}, stride {}, padding {}", name, pool.size, pool.stride,
                       pool.padding);
  }
};

template <class T>
class MaxPoolLayer final : public Layer<T> {
 public:
  MaxPoolLayer(const MaxPool& pool, const Shape& in) : channels_(in[0]), size_(size_of(pool, in)) {}

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

struct MaxPoolKind : PoolKind<MaxPool, MaxPoolLayer> {
  static std::string describe(const MaxPool& pool) { return described("max", pool); }
  static std::string to_onnx(const MaxPool& pool, const std::string& in, OnnxGraph& graph) {
    return graph.node("MaxPool", {in}, onnx::window(pool.size, pool.stride, pool.padding));
  }
};

}  // namespace

const LayerEntry entries::max_pool = entry_for<MaxPoolKind>();

namespace {

template <class T>
class WindowMeanLayer final : public Layer<T> {
 public:
  WindowMeanLayer(const AveragePool& pool, const Shape& in)
      : channels_(in[0]), size_(size_of(pool, in)) {}

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

struct WindowMeanKind : PoolKind<AveragePool, WindowMeanLayer> {
  static std::string describe(const AveragePool& pool) { return described("average", pool); }
  static std::string to_onnx(const AveragePool& pool, const std::string& in, OnnxGraph& graph) {
    std::vector<onnx::Message> attributes = onnx::window(pool.size, pool.stride, pool.padding);
    attributes.push_back(onnx::attribute("count_include_pad", std::int64_t{1}));
    return graph.node("AveragePool", {in}, attributes);
  }
};

}  // namespace

const LayerEntry entries::average_pool = entry_for<WindowMeanKind>();

namespace {

template <class T>
class AveragePoolLayer final : public Layer<T> {
 public:
  AveragePoolLayer(const GlobalAveragePool&, const Shape& in)
      : channels_(in[0]), area_(in[1] * in[2]) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    average_pool_forward({channels_, area_, pass.count}, x, y);
  }
  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) average_pool_backward({channels_, area_, count}, dy, dx);
  }

 private:
  Index channels_, area_;
};

struct AveragePoolKind : KindOf<GlobalAveragePool, AveragePoolLayer> {
  static std::string describe(const GlobalAveragePool&) { return "global average pool"; }
  static Shape output(const GlobalAveragePool&, const Shape& in) {
    demand_image(in);
    return {in[0]};
  }
  static std::string to_onnx(const GlobalAveragePool&, const std::string& in, OnnxGraph& graph) {
    return graph.flattened(graph.node("GlobalAveragePool", {in}));
  }
};

}  // namespace

const LayerEntry entries::global_average_pool = entry_for<AveragePoolKind>();

}  // namespace fast::nn
