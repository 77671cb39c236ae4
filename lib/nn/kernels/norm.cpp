// Normalization of images in blocks. Lanes without a sample do not contribute. There, x may hold
// any finite value, dy holds zeros, and dx is set to zero.
#include "nn/kernels/vector.hpp"

namespace fast::nn {
namespace {

float root(float x) { return __builtin_sqrtf(x); }
double root(double x) { return __builtin_sqrt(x); }

/// One value per lane of a block.
template <class T>
struct Lanes {
  Vector<T> low{}, high{};
  T at(Index lane) const { return lane < lanes<T> / 2 ? low[lane] : high[lane - lanes<T> / 2]; }
  double sum(Index present = lanes<T>) const {
    double total = 0;
    for (Index lane = 0; lane < present; ++lane) total += static_cast<double>(at(lane));
    return total;
  }
};

/// Sums term(place, half) over the places of a plane. Four independent sums hide the latency.
template <class T, class Term>
Lanes<T> sum_over(Index area, Term term) {
  Lanes<T> sums[4];
  Index i = 0;
  for (; i + 4 <= area; i += 4)
#pragma GCC unroll 4
    for (int chain = 0; chain < 4; ++chain) {
      sums[chain].low += term(2 * (i + chain));
      sums[chain].high += term(2 * (i + chain) + 1);
    }
  for (; i < area; ++i) {
    sums[0].low += term(2 * i);
    sums[0].high += term(2 * i + 1);
  }
  return {(sums[0].low + sums[1].low) + (sums[2].low + sums[3].low),
          (sums[0].high + sums[1].high) + (sums[2].high + sums[3].high)};
}

Index block_count_of(Index samples, Index lane_count) {
  return (samples + lane_count - 1) / lane_count;
}

template <class T>
const Vector<T>* plane_of(const ImageSize& s, const T* x, Index block, Index channel) {
  return vectors(x) + (block * s.channels + channel) * s.area * 2;
}
template <class T>
Vector<T>* plane_of(const ImageSize& s, T* x, Index block, Index channel) {
  return vectors(x) + (block * s.channels + channel) * s.area * 2;
}

template <class T>
void clear_absent_lanes(const ImageSize& s, T* x) {
  const Index present = s.samples % lanes<T>;
  if (present == 0) return;
  T* block = x + s.samples / lanes<T> * lanes<T> * s.channels * s.area;
  for (Index i = 0; i < s.channels * s.area; ++i)
    for (Index lane = present; lane < lanes<T>; ++lane) block[i * lanes<T> + lane] = 0;
}

/// Gradients of one channel, over all blocks.
template <bool Relu, class T>
void backward_channel(const ImageSize& s, Index c, T mean, T reciprocal, T weight, const T* x,
                      const T* y, const T* dy, T* dweight, T* dbias, T* dx) {
  const Index blocks = block_count_of(s.samples, lanes<T>);
  const auto grad_at = [](const Vector<T>* grads, const Vector<T>* out, Index i) {
    if constexpr (Relu)
      return out[i] > T{0} ? grads[i] : Vector<T>{};
    else
      return grads[i];
  };
  double grad_sum = 0, product_sum = 0;
  for (Index b = 0; b < blocks; ++b) {
    const Vector<T>*in = plane_of(s, x, b, c), *out = plane_of(s, y, b, c),
          *grads = plane_of(s, dy, b, c);
    Vector<T> plain[4] = {}, products[4] = {};  // chains enough to hide the latency
    const auto add = [&](Index i, int chain) {
      const Vector<T> grad = grad_at(grads, out, i);
      plain[chain] += grad;
      products[chain] += grad * (in[i] - mean);
    };
    Index i = 0;
    for (; i + 4 <= 2 * s.area; i += 4)
#pragma GCC unroll 4
      for (int chain = 0; chain < 4; ++chain) add(i + chain, chain);
    for (; i < 2 * s.area; ++i) add(i, 0);
    grad_sum += Lanes<T>{plain[0] + plain[1], plain[2] + plain[3]}.sum();
    product_sum += Lanes<T>{products[0] + products[1], products[2] + products[3]}.sum();
  }
  *dbias = static_cast<T>(grad_sum);
  *dweight = static_cast<T>(product_sum * static_cast<double>(reciprocal));
  const double values = static_cast<double>(s.samples) * static_cast<double>(s.area);
  const T scale = weight * reciprocal;
  const T offset = static_cast<T>(grad_sum / values);
  const T tilt = static_cast<T>(product_sum / values * static_cast<double>(reciprocal) *
                                static_cast<double>(reciprocal));
  for (Index b = 0; b < blocks && dx != nullptr; ++b) {
    const Vector<T>*in = plane_of(s, x, b, c), *out = plane_of(s, y, b, c),
          *grads = plane_of(s, dy, b, c);
    Vector<T>* result = plane_of(s, dx, b, c);
    for (Index i = 0; i < 2 * s.area; ++i)
      result[i] = scale * (grad_at(grads, out, i) - offset - tilt * (in[i] - mean));
  }
}

}  // namespace

template <class T>
void batch_statistics(const ImageSize& s, const T* x, T* mean, T* variance) {
  const Index blocks = block_count_of(s.samples, lanes<T>);
  for (Index c = 0; c < s.channels; ++c) {
    double values = 0, center = 0, squares = 0;  // joined as Chan et al. 1979 do
    for (Index b = 0; b < blocks; ++b) {
      const Vector<T>* in = plane_of(s, x, b, c);
      const Index present = smaller(lanes<T>, s.samples - b * lanes<T>);
      const double more = static_cast<double>(present * s.area);
      const double here = sum_over<T>(s.area, [&](Index i) { return in[i]; }).sum(present) / more;
      const T shift = static_cast<T>(here);
      const double spread = sum_over<T>(s.area, [&](Index i) {
                              return (in[i] - shift) * (in[i] - shift);
                            }).sum(present);
      const double rounding = here - static_cast<double>(shift);
      const double delta = here - center;
      squares +=
          spread - more * rounding * rounding + delta * delta * values * more / (values + more);
      center += delta * more / (values + more);
      values += more;
    }
    mean[c] = static_cast<T>(center);
    variance[c] = static_cast<T>(squares / values);
  }
}

template <class T>
void batch_norm_forward(const ImageSize& s, const T* mean, const T* scale, const T* bias,
                        const T* x, T* y, bool relu) {
  const Index blocks = block_count_of(s.samples, lanes<T>);
  for (Index b = 0; b < blocks; ++b)
    for (Index c = 0; c < s.channels; ++c) {
      const Vector<T>* in = plane_of(s, x, b, c);
      Vector<T>* out = plane_of(s, y, b, c);
      const T m = mean[c], k = scale[c], o = bias[c];
      if (relu)
        for (Index i = 0; i < 2 * s.area; ++i) {
          const Vector<T> value = k * (in[i] - m) + o;
          out[i] = value < T{0} ? Vector<T>{} : value;  // a NaN stays one
        }
      else
        for (Index i = 0; i < 2 * s.area; ++i) out[i] = k * (in[i] - m) + o;
    }
}

template <class T>
void batch_norm_backward(const ImageSize& s, const T* mean, const T* reciprocal, const T* weights,
                         const T* x, const T* y, const T* dy, T* dweights, T* dbias, T* dx,
                         bool relu) {
  for (Index c = 0; c < s.channels; ++c) {
    const auto channel = relu ? backward_channel<true, T> : backward_channel<false, T>;
    channel(s, c, mean[c], reciprocal[c], weights[c], x, y, dy, dweights + c, dbias + c, dx);
  }
  if (dx != nullptr) clear_absent_lanes(s, dx);
}

template <class T>
void group_norm_forward(const ImageSize& s, Index groups, T epsilon, const T* weights,
                        const T* bias, const T* x, T* y, T* mean, T* reciprocal) {
  const Index size = s.channels / groups, blocks = block_count_of(s.samples, lanes<T>);
  const T share = T{1} / static_cast<T>(size * s.area);
  for (Index b = 0; b < blocks; ++b)
    for (Index g = 0; g < groups; ++g) {
      const Vector<T>* in = plane_of(s, x, b, g * size);
      Vector<T>* out = plane_of(s, y, b, g * size);
      Vector<T>* means = vectors(mean) + 2 * (b * groups + g);
      Vector<T>* scales = vectors(reciprocal) + 2 * (b * groups + g);
      const Lanes<T> sums = sum_over<T>(size * s.area, [&](Index i) { return in[i]; });
      means[0] = sums.low * share;
      means[1] = sums.high * share;
      const Lanes<T> squares = sum_over<T>(
          size * s.area, [&](Index i) { return (in[i] - means[i % 2]) * (in[i] - means[i % 2]); });
      for (Index lane = 0; lane < lanes<T>; ++lane)
        reciprocal[(b * groups + g) * lanes<T> + lane] =
            T{1} / root(squares.at(lane) * share + epsilon);
      for (Index c = 0; c < size; ++c)
        for (Index i = 2 * c * s.area; i < 2 * (c + 1) * s.area; ++i)
          out[i] =
              (in[i] - means[i % 2]) * scales[i % 2] * weights[g * size + c] + bias[g * size + c];
    }
}

template <class T>
void group_norm_backward(const ImageSize& s, Index groups, const T* weights, const T* x,
                         const T* dy, const T* mean, const T* reciprocal, T* dweights, T* dbias,
                         T* dx) {
  const Index size = s.channels / groups, blocks = block_count_of(s.samples, lanes<T>);
  const T share = T{1} / static_cast<T>(size * s.area);
  for (Index c = 0; c < s.channels; ++c) dweights[c] = dbias[c] = 0;
  for (Index b = 0; b < blocks; ++b)
    for (Index g = 0; g < groups; ++g) {
      const Vector<T>* means = vectors(mean) + 2 * (b * groups + g);
      const Vector<T>* scales = vectors(reciprocal) + 2 * (b * groups + g);
      Vector<T> grad_sum[2] = {}, product_sum[2] = {};
      for (Index c = g * size; c < (g + 1) * size; ++c) {
        const Vector<T>*in = plane_of(s, x, b, c), *grads = plane_of(s, dy, b, c);
        const Lanes<T> plain = sum_over<T>(s.area, [&](Index i) { return grads[i]; });
        const Lanes<T> products = sum_over<T>(
            s.area, [&](Index i) { return grads[i] * (in[i] - means[i % 2]) * scales[i % 2]; });
        dbias[c] += static_cast<T>(plain.sum());
        dweights[c] += static_cast<T>(products.sum());
        grad_sum[0] += weights[c] * share * plain.low;
        grad_sum[1] += weights[c] * share * plain.high;
        product_sum[0] += weights[c] * share * products.low;
        product_sum[1] += weights[c] * share * products.high;
      }
      for (Index c = g * size; c < (g + 1) * size && dx != nullptr; ++c) {
        const Vector<T>*in = plane_of(s, x, b, c), *grads = plane_of(s, dy, b, c);
        Vector<T>* result = plane_of(s, dx, b, c);
        for (Index i = 0; i < 2 * s.area; ++i) {
          const Index h = i % 2;
          result[i] = scales[h] * (weights[c] * grads[i] - grad_sum[h] -
                                   (in[i] - means[h]) * scales[h] * product_sum[h]);
        }
      }
    }
}

template <class T>
void average_pool_forward(const ImageSize& s, const T* x, T* y) {
  const T share = T{1} / static_cast<T>(s.area);
  for (Index first = 0; first < s.samples; first += lanes<T>)
    for (Index c = 0; c < s.channels; ++c) {
      const Vector<T>* in = plane_of(s, x, first / lanes<T>, c);
      const Lanes<T> sums = sum_over<T>(s.area, [&](Index i) { return in[i]; });
      for (Index lane = 0; lane < smaller(lanes<T>, s.samples - first); ++lane)
        y[(first + lane) * s.channels + c] = share * sums.at(lane);
    }
}

template <class T>
void average_pool_backward(const ImageSize& s, const T* dy, T* dx) {
  const T share = T{1} / static_cast<T>(s.area);
  for (Index first = 0; first < s.samples; first += lanes<T>)
    for (Index c = 0; c < s.channels; ++c) {
      Vector<T>* out = plane_of(s, dx, first / lanes<T>, c);
      alignas(64) T grads[lanes<T>] = {};
      for (Index lane = 0; lane < smaller(lanes<T>, s.samples - first); ++lane)
        grads[lane] = share * dy[(first + lane) * s.channels + c];
      for (Index i = 0; i < 2 * s.area; ++i) out[i] = vectors(grads)[i % 2];
    }
}

#define FAST_INSTANTIATE(T)                                                                      \
  template void batch_statistics(const ImageSize&, const T*, T*, T*);                            \
  template void batch_norm_forward(const ImageSize&, const T*, const T*, const T*, const T*, T*, \
                                   bool);                                                        \
  template void batch_norm_backward(const ImageSize&, const T*, const T*, const T*, const T*,    \
                                    const T*, const T*, T*, T*, T*, bool);                       \
  template void group_norm_forward(const ImageSize&, Index, T, const T*, const T*, const T*, T*, \
                                   T*, T*);                                                      \
  template void group_norm_backward(const ImageSize&, Index, const T*, const T*, const T*,       \
                                    const T*, const T*, T*, T*, T*);                             \
  template void average_pool_forward(const ImageSize&, const T*, T*);                            \
  template void average_pool_backward(const ImageSize&, const T*, T*);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::nn
