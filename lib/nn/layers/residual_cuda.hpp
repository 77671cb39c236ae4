// Residual blocks on GPUs.
#pragma once

#include "nn/cuda/batch_norm_elements.hpp"
#include "nn/layers/cuda_part.hpp"
#include "nn/noise.hpp"

namespace fast::cuda {

/// out = a + b. With `relu`, then max(out, 0). Where `gate`, unless null, is at most 0, out is 0.
/// out may be a.
template <class V>
struct Add {
  const V *a, *b;
  V* out;
  Index count;
  bool relu;
  const V* gate = nullptr;

  Index size() const { return packed_size<V>(count); }
  FAST_HOST_DEVICE void at(Index place) const { at_pack<V>(*this, count, place); }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float sum[Width], more[Width];
    load(a + e, sum);
    load(b + e, more);
    for (int i = 0; i < Width; ++i) sum[i] = after_relu(sum[i] + more[i], relu);
    if (gate != nullptr) {
      float open[Width];
      load(gate + e, open);
      for (int i = 0; i < Width; ++i) sum[i] = open[i] > 0 ? sum[i] : 0;
    }
    store(sum, out + e);
  }
};

/// a + b. A normalization that has just made one of them, and that nothing else reads, includes the
/// sum.
template <class V>
Values<V> added(Builder<V>& build, const Values<V>& a, const Values<V>& b, Index count, bool relu) {
  auto* norm = build.template last<Normalize<V>>();
  if (norm != nullptr && a != b && !norm->affine.relu && norm->more == nullptr) {
    const bool first = norm->y == a.get();
    if (first || norm->y == b.get()) {
      norm->more = (first ? b : a).get();
      norm->affine.relu = relu;
      return first ? a : b;
    }
  }
  const Values<V> y = build.values(count);
  build.add(Add<V>{a.get(), b.get(), y.get(), count, relu});
  return y;
}

/// As rectified(). A sum that has just made dy, and that nothing else reads, includes the ReLU.
template <class V>
Values<V> rectified_sum(Builder<V>& build, const Values<V>& y, const Values<V>& dy, Index count,
                        bool relu) {
  const bool own = build.was_passed_on(dy);
  auto* sum = build.template last<Add<V>>();
  if (!relu || !own || sum == nullptr || sum->out != dy.get())
    return rectified(build, y, dy, count, relu);
  sum->gate = y.get();
  return dy;
}

template <>
struct GpuPart<nn::Residual> {
  template <class V>
  using Works = WorkList<Add<V>, Normalize<V>, RectifyGradients<V>>;
  static constexpr bool takes_relu = true;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Residual& residual, const Ends& ends,
                     const Values<V>& x, bool relu) {
    const Index in_count = build.samples() * elements_of(ends.in),
                out_count = build.samples() * elements_of(ends.out);
    const auto body =
        std::make_shared<Chain<V>>(build.through(residual.body, ends.in, x, build.place()));
    const auto shortcut = std::make_shared<Chain<V>>(
        build.through(residual.shortcut, ends.in, x, nn::place_of_shortcut(build.place())));
    const Values<V> y = added(build, body->y, shortcut->y, out_count, relu);
    const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      const Values<V> grads = rectified_sum(build, y, dy, out_count, relu);
      const Values<V> through_body = build.back(*body, grads, wanted);
      const Values<V> past_it = build.back(*shortcut, grads, wanted);
      if (!wanted) return nullptr;
      Values<V> dx = build.values(in_count);
      build.add(Add<V>{through_body.get(), past_it.get(), dx.get(), in_count, false});
      build.pass_on(dx);
      return dx;
    };
    return {y, backward, body->trained() || shortcut->trained()};
  }
};

}  // namespace fast::cuda
