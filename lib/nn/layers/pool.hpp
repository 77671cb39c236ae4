// What pooling layers have in common.
#pragma once

#include "nn/layers/layer_entry.hpp"
#include "nn/shape.hpp"

namespace fast::nn {

/// The common part of their rows. A layer adds `describe`, `make` and `to_onnx`.
template <class S>
struct PoolKind {
  using Spec = S;

  static void keys(Spec& pool, Keys& keys) {
    keys.optional("size", pool.size);
    keys.optional("stride", pool.stride);
    keys.optional("padding", pool.padding);
  }
  static Shape output(const Spec& pool, const Shape& in) {
    const Window window{pool.size, pool.stride, pool.padding};
    window.demand_fit(in);
    demand(2 * pool.padding <= pool.size, "padding must be at most half of the window");
    return {in[0], window.along(in[1]), window.along(in[2])};
  }
  static std::string described(const char* name, const Spec& pool) {
    return fmt::format("{} pool {}, stride {}, padding {}", name, pool.size, pool.stride,
                       pool.padding);
  }
  static PoolSize size_of(const Spec& pool, const Shape& in) {
    const Shape out = output(pool, in);
    return {in[1], in[2], out[1], out[2], pool.size, pool.stride, pool.padding};
  }
};

}  // namespace fast::nn
