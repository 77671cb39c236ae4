// Group normalization on GPUs.
#pragma once

#include "nn/cuda/layer_elements.hpp"
#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

// Group normalization, as in layer_elements.hpp. One thread processes a place.

/// The mean of each channel of a sample, and the sum of squared differences from it.
template <class V>
struct PlaneMoments {
  const V* x;
  float *means, *squares;  // [samples][channels] each
  Index samples, area, channels;

  Index size() const { return samples * channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const V* first = x + e / channels * area * channels + e % channels;
    const float origin = get(first, 0);
    float sum = 0, square = 0;
    for (Index i = 0; i < area; ++i) {
      const float value = get(first, i * channels) - origin;
      sum += value;
      square = fused(value, value, square);
    }
    const float mean = sum / static_cast<float>(area);
    means[e] = origin + mean;
    squares[e] = fused(-sum, mean, square);
  }
};

/// Combines the moments of channels to those of each group of a sample.
struct GroupMoments {
  const float *means, *squares;
  float *mean, *reciprocal;           // [samples][groups]
  Index samples, groups, each, area;  // `each` channels a group
  float epsilon;

  Index size() const { return samples * groups; }
  FAST_HOST_DEVICE void at(Index e) const {
    double sum = 0, square = 0;
    for (Index k = 0; k < each; ++k) sum += static_cast<double>(means[e * each + k]);
    const double center = sum / static_cast<double>(each);
    for (Index k = 0; k < each; ++k) {
      const double apart = static_cast<double>(means[e * each + k]) - center;
      square +=
          static_cast<double>(squares[e * each + k]) + apart * apart * static_cast<double>(area);
    }
    mean[e] = static_cast<float>(center);
    const double variance = square / static_cast<double>(each * area);
    reciprocal[e] = static_cast<float>(1 / root(variance + static_cast<double>(epsilon)));
  }
};

/// Channel and group of the values of images [samples][area][channels].
struct GroupPlaces {
  Index samples, area, groups, each;

  FAST_HOST_DEVICE Index channels() const { return groups * each; }
  FAST_HOST_DEVICE Index size() const { return samples * area * channels(); }
  FAST_HOST_DEVICE Index channel(Index e) const { return e % channels(); }
  /// The place in [samples][groups].
  FAST_HOST_DEVICE Index group(Index e) const {
    return e / channels() / area * groups + channel(e) / each;
  }
};

template <class V>
struct GroupNormalize {
  const V* x;
  V* y;
  const float *mean, *reciprocal;  // [samples][groups]
  const float *weight, *bias;      // [channels]
  GroupPlaces places;
  bool relu;

  Index size() const { return places.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = places.channel(e), g = places.group(e);
    const float value = fused(get(x, e) - mean[g], reciprocal[g] * weight[c], bias[c]);
    put(after_relu(value, relu), y, e);
  }
};

/// The gradient of the output of the normalization: 0 where the output of the following ReLU is 0.
template <class V>
FAST_HOST_DEVICE float grad_before(const V* y, const V* dy, Index e) {
  return y == nullptr || get(y, e) > 0 ? get(dy, e) : 0;
}

/// Gradients of bias and weight for each sample. y is null if no ReLU follows.
template <class V>
struct GroupNormalizeShares {
  const V *x, *y, *dy;
  const float *mean, *reciprocal;
  float *dbias, *dweight;  // [samples][channels] each
  GroupPlaces places;

  Index size() const { return places.samples * places.channels(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index channels = places.channels(), first = e / channels * places.area * channels;
    const Index g = places.group(first + e % channels);
    float sum = 0, product = 0;
    for (Index i = 0; i < places.area; ++i) {
      const Index place = first + i * channels + e % channels;
      const float grad = grad_before(y, dy, place);
      sum += grad;
      product = fused(grad, (get(x, place) - mean[g]) * reciprocal[g], product);
    }
    dbias[e] = sum;
    dweight[e] = product;
  }
};

/// Means over each group of a sample of the gradients of x̂ (`alone`), and of their products with
/// x̂ (`times`).
struct GroupGradients {
  const float *dbias, *dweight, *weight;
  float *alone, *times;  // [samples][groups] each
  GroupPlaces places;

  Index size() const { return places.samples * places.groups; }
  FAST_HOST_DEVICE void at(Index e) const {
    float sum = 0, product = 0;
    for (Index k = 0; k < places.each; ++k) {
      const float scale = weight[e % places.groups * places.each + k];
      sum = fused(scale, dbias[e * places.each + k], sum);
      product = fused(scale, dweight[e * places.each + k], product);
    }
    const float share = 1 / static_cast<float>(places.each * places.area);
    alone[e] = share * sum;
    times[e] = share * product;
  }
};

template <class V>
struct GroupNormalizeGradients {
  const V *x, *y, *dy;
  const float *mean, *reciprocal, *weight, *alone, *times;
  V* dx;
  GroupPlaces places;

  Index size() const { return places.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index g = places.group(e);
    const float normal = (get(x, e) - mean[g]) * reciprocal[g];
    const float grad = weight[places.channel(e)] * grad_before(y, dy, e);
    put(reciprocal[g] * (grad - alone[g] - normal * times[g]), dx, e);
  }
};

template <>
struct GpuPart<nn::GroupNorm> {
  template <class V>
  using Works = WorkList<PlaneMoments<V>, GroupMoments, GroupNormalize<V>, GroupNormalizeShares<V>,
                         ColumnTotals, GroupGradients, GroupNormalizeGradients<V>>;
  static constexpr bool takes_relu = true;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::GroupNorm& norm, const Ends& ends,
                     const Values<V>& x, bool relu) {
    const Index channels = ends.in[0], area = area_of(ends.in), planes = build.samples() * channels;
    const Index w = build.parameters(channels), b = build.parameters(channels),
                groups = build.samples() * norm.groups;
    const GroupPlaces places{build.samples(), area, norm.groups, channels / norm.groups};
    const Values<V> y = build.values(planes * area);
    const Sums mean = build.sums(groups), reciprocal = build.sums(groups);
    {
      const Sums means = build.sums(planes), squares = build.sums(planes);
      build.add(
          PlaneMoments<V>{x.get(), means.get(), squares.get(), build.samples(), area, channels});
      build.add(GroupMoments{means.get(), squares.get(), mean.get(), reciprocal.get(),
                             build.samples(), norm.groups, places.each, area,
                             static_cast<float>(norm.epsilon)});
    }
    build.add(GroupNormalize<V>{x.get(), y.get(), mean.get(), reciprocal.get(), build.weights(w),
                                build.weights(b), places, relu});
    const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      const V* after = relu ? y.get() : nullptr;
      const Sums dbias = build.sums(planes), dweight = build.sums(planes);
      build.add(GroupNormalizeShares<V>{x.get(), after, dy.get(), mean.get(), reciprocal.get(),
                                        dbias.get(), dweight.get(), places});
      const Shares shares = Shares::of_sums(build.samples(), channels);
      build.add(ColumnTotals{dbias.get(), build.gradients(b), shares});
      build.add(ColumnTotals{dweight.get(), build.gradients(w), shares});
      if (!wanted) return nullptr;
      const Sums alone = build.sums(groups), times = build.sums(groups);
      build.add(GroupGradients{dbias.get(), dweight.get(), build.weights(w), alone.get(),
                               times.get(), places});
      Values<V> dx = build.values(planes * area);
      build.add(GroupNormalizeGradients<V>{x.get(), after, dy.get(), mean.get(), reciprocal.get(),
                                           build.weights(w), alone.get(), times.get(), dx.get(),
                                           places});
      return dx;
    };
    return {y, backward, true};
  }
};

}  // namespace fast::cuda
