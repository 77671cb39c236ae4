// Sums over many places, and batch and group normalization, as in layer_elements.hpp. Sums are
// taken in two passes, always in the same order: shares first, which threads take apart from each
// other, then the totals.
#pragma once

#include "cuda/layer_elements.hpp"

namespace fast::cuda {

/// The rows of a matrix [rows][columns] that share `part` of `parts` sums over: part, part + parts
/// and so on.
struct Shares {
  Index rows, columns, parts;

  Index size() const { return parts * columns; }
  FAST_HOST_DEVICE Index column(Index e) const { return e % columns; }
  FAST_HOST_DEVICE Index part(Index e) const { return e / columns; }
  FAST_HOST_DEVICE Index rows_of(Index part) const { return (rows - part + parts - 1) / parts; }
  /// f(place) for each of the share's places in the matrix.
  template <class F>
  FAST_HOST_DEVICE void each(Index e, const F& f) const {
    for (Index row = part(e); row < rows; row += parts) f(row * columns + column(e));
  }
  FAST_HOST_DEVICE float total(const float* sums, Index column) const {
    double sum = 0;
    for (Index p = 0; p < parts; ++p) sum += static_cast<double>(sums[p * columns + column]);
    return static_cast<float>(sum);
  }
};

template <class V>
struct ColumnShares {
  const V* x;
  float* sums;  // [parts][columns]
  Shares shares;

  Index size() const { return shares.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    float sum = 0;
    shares.each(e, [&](Index place) { sum += get(x, place); });
    sums[e] = sum;
  }
};

struct ColumnTotals {
  const float* sums;
  float* totals;
  Shares shares;

  Index size() const { return shares.columns; }
  FAST_HOST_DEVICE void at(Index c) const { totals[c] = shares.total(sums, c); }
};

/// Mean of each share of a channel, and the sum of squares about it. Sums are taken about the
/// share's first value, so that a mean far from 0 costs no digits.
template <class V>
struct MomentShares {
  const V* x;
  float *means, *squares;  // [parts][channels] each
  Shares shares;

  Index size() const { return shares.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const float origin = get(x, shares.part(e) * shares.columns + shares.column(e));
    float sum = 0, square = 0;
    shares.each(e, [&](Index place) {
      const float value = get(x, place) - origin;
      sum += value;
      square = fused(value, value, square);
    });
    const float mean = sum / static_cast<float>(shares.rows_of(shares.part(e)));
    means[e] = origin + mean;
    squares[e] = fused(-sum, mean, square);
  }
};

/// The shares' moments joined (Chan, Golub & LeVeque 1983), and the running statistics moved.
struct MomentTotals {
  const float *means, *squares;
  float *mean, *reciprocal;                // [channels]; 1 / sqrt(variance + epsilon)
  float *running_mean, *running_variance;  // [channels]
  Shares shares;
  float momentum, epsilon;

  Index size() const { return shares.columns; }
  FAST_HOST_DEVICE void at(Index c) const {
    double count = 0, center = 0, square = 0;
    for (Index p = 0; p < shares.parts; ++p) {
      const auto more = static_cast<double>(shares.rows_of(p));
      const double apart = static_cast<double>(means[p * shares.columns + c]) - center;
      center += apart * more / (count + more);
      square += static_cast<double>(squares[p * shares.columns + c]) +
                apart * apart * count * more / (count + more);
      count += more;
    }
    mean[c] = static_cast<float>(center);
    reciprocal[c] = static_cast<float>(1 / root(square / count + static_cast<double>(epsilon)));
    const auto unbiased = static_cast<float>(square / (count > 1 ? count - 1 : 1));
    running_mean[c] = fused(momentum, mean[c] - running_mean[c], running_mean[c]);
    running_variance[c] = fused(momentum, unbiased - running_variance[c], running_variance[c]);
  }
};

struct Reciprocals {
  const float* variance;
  float* reciprocal;
  Index channels;
  float epsilon;

  Index size() const { return channels; }
  FAST_HOST_DEVICE void at(Index c) const { reciprocal[c] = 1 / root(variance[c] + epsilon); }
};

/// y = (x - mean)·reciprocal·weight + bias; then, with `relu`, at least 0.
template <class V>
struct Normalize {
  const V* x;
  V* y;
  const float *mean, *reciprocal, *weight, *bias;  // [channels] each
  Index channels, count;
  bool relu;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % channels;
    const float value = fused(get(x, e) - mean[c], reciprocal[c] * weight[c], bias[c]);
    put(relu && value < 0 ? 0 : value, y, e);
  }
};

/// The slope that reaches the normalization: 0 where the ReLU after it was at 0.
template <class V>
FAST_HOST_DEVICE float slope_before(const V* y, const V* dy, Index e) {
  return y == nullptr || get(y, e) > 0 ? get(dy, e) : 0;
}

/// Gradients of bias (Σ dy) and weight (Σ dy·x̂) by shares; y is null where no ReLU follows.
template <class V>
struct NormalizeShares {
  const V *x, *y, *dy;
  const float *mean, *reciprocal;
  float *dbias, *dweight;  // [parts][channels] each
  Shares shares;

  Index size() const { return shares.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = shares.column(e);
    float sum = 0, product = 0;
    shares.each(e, [&](Index place) {
      const float slope = slope_before(y, dy, place);
      sum += slope;
      product = fused(slope, (get(x, place) - mean[c]) * reciprocal[c], product);
    });
    dbias[e] = sum;
    dweight[e] = product;
  }
};

template <class V>
struct NormalizeSlopes {
  const V *x, *y, *dy;
  const float *mean, *reciprocal, *weight;
  const float *dbias, *dweight;  // totals, [channels] each
  V* dx;
  Index channels, rows;

  Index size() const { return rows * channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % channels;
    const float share = 1 / static_cast<float>(rows);
    const float normal = (get(x, e) - mean[c]) * reciprocal[c];
    const float centered = slope_before(y, dy, e) - share * (dbias[c] + normal * dweight[c]);
    put(weight[c] * reciprocal[c] * centered, dx, e);
  }
};

/// Of group normalization: mean of each channel of a sample, and the sum of squares about it.
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

/// The channels' moments joined to those of each group of a sample.
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

/// Where the values of an image, [samples][area][channels], find their channel and group.
struct GroupPlaces {
  Index samples, area, groups, each;

  FAST_HOST_DEVICE Index channels() const { return groups * each; }
  FAST_HOST_DEVICE Index size() const { return samples * area * channels(); }
  FAST_HOST_DEVICE Index channel(Index e) const { return e % channels(); }
  /// In [samples][groups].
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
    put(relu && value < 0 ? 0 : value, y, e);
  }
};

/// Gradients of bias and weight by samples; y is null where no ReLU follows.
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
      const float slope = slope_before(y, dy, place);
      sum += slope;
      product = fused(slope, (get(x, place) - mean[g]) * reciprocal[g], product);
    }
    dbias[e] = sum;
    dweight[e] = product;
  }
};

/// Means over each group of a sample of the slopes of x̂, alone and times x̂.
struct GroupSlopes {
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
struct GroupNormalizeSlopes {
  const V *x, *y, *dy;
  const float *mean, *reciprocal, *weight, *alone, *times;
  V* dx;
  GroupPlaces places;

  Index size() const { return places.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index g = places.group(e);
    const float normal = (get(x, e) - mean[g]) * reciprocal[g];
    const float slope = weight[places.channel(e)] * slope_before(y, dy, e);
    put(reciprocal[g] * (slope - alone[g] - normal * times[g]), dx, e);
  }
};

}  // namespace fast::cuda
