// Layers on the device but for convolutions and matrix products: what is computed for each place of
// a result, compiled for devices and for the host, so that a network can be tested without a
// device. Images are [sample][row][column][channel], vectors [sample][feature], all f32. Sums over
// many places are taken in two passes, always in the same order: shares first, which threads take
// apart from each other, then the totals. NaN passes through, so that the loss shows it.
#pragma once

#include "cuda/elements.hpp"

namespace fast::cuda {

using Index = std::int64_t;

/// [outer][rows][columns] to [outer][columns][rows].
struct SwapLast {
  const float* from;
  float* to;
  Index outer, rows, columns;

  Index size() const { return outer * rows * columns; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index row = e % rows, column = e / rows % columns, first = e / rows / columns;
    to[e] = from[(first * rows + row) * columns + column];
  }
};

/// y += bias of the channel; then, with `relu`, at least 0.
struct AddBias {
  float* y;
  const float* bias;
  Index channels, count;
  bool relu;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const {
    const float value = y[e] + bias[e % channels];
    y[e] = relu && value < 0 ? 0 : value;
  }
};

struct Rectify {
  const float* x;
  float* y;
  Index count;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const { y[e] = x[e] < 0 ? 0 : x[e]; }
};

struct RectifySlopes {
  const float *y, *dy;
  float* dx;
  Index count;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const { dx[e] = y[e] > 0 ? dy[e] : 0; }
};

/// out = a + b; then, with `relu`, at least 0. out may be a.
struct Add {
  const float *a, *b;
  float* out;
  Index count;
  bool relu;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const {
    const float value = a[e] + b[e];
    out[e] = relu && value < 0 ? 0 : value;
  }
};

/// sum = or += factor · x.
struct AddScaled {
  float* sum;
  const float* x;
  float factor;
  bool first;
  Index count;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const { sum[e] = fused(factor, x[e], first ? 0.0F : sum[e]); }
};

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

struct ColumnShares {
  const float* x;
  float* sums;  // [parts][columns]
  Shares shares;

  Index size() const { return shares.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    float sum = 0;
    shares.each(e, [&](Index place) { sum += x[place]; });
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
struct MomentShares {
  const float* x;
  float *means, *squares;  // [parts][channels] each
  Shares shares;

  Index size() const { return shares.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const float origin = x[shares.part(e) * shares.columns + shares.column(e)];
    float sum = 0, square = 0;
    shares.each(e, [&](Index place) {
      const float value = x[place] - origin;
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
struct Normalize {
  const float* x;
  float* y;
  const float *mean, *reciprocal, *weight, *bias;  // [channels] each
  Index channels, count;
  bool relu;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % channels;
    const float value = fused(x[e] - mean[c], reciprocal[c] * weight[c], bias[c]);
    y[e] = relu && value < 0 ? 0 : value;
  }
};

/// The slope that reaches the normalization: 0 where the ReLU after it was at 0.
FAST_HOST_DEVICE float slope_before(const float* y, const float* dy, Index e) {
  return y == nullptr || y[e] > 0 ? dy[e] : 0;
}

/// Gradients of bias (Σ dy) and weight (Σ dy·x̂) by shares; y is null where no ReLU follows.
struct NormalizeShares {
  const float *x, *y, *dy, *mean, *reciprocal;
  float *dbias, *dweight;  // [parts][channels] each
  Shares shares;

  Index size() const { return shares.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = shares.column(e);
    float sum = 0, product = 0;
    shares.each(e, [&](Index place) {
      const float slope = slope_before(y, dy, place);
      sum += slope;
      product = fused(slope, (x[place] - mean[c]) * reciprocal[c], product);
    });
    dbias[e] = sum;
    dweight[e] = product;
  }
};

struct NormalizeSlopes {
  const float *x, *y, *dy, *mean, *reciprocal, *weight;
  const float *dbias, *dweight;  // totals, [channels] each
  float* dx;
  Index channels, rows;

  Index size() const { return rows * channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % channels;
    const float share = 1 / static_cast<float>(rows);
    const float normal = (x[e] - mean[c]) * reciprocal[c];
    const float centered = slope_before(y, dy, e) - share * (dbias[c] + normal * dweight[c]);
    dx[e] = weight[c] * reciprocal[c] * centered;
  }
};

struct PoolShape {
  Index samples, height, width, channels, out_height, out_width, size, stride, padding;
  /// Where the window's part within a side begins and ends.
  FAST_HOST_DEVICE Index begin(Index window) const {
    const Index place = window * stride - padding;
    return place < 0 ? 0 : place;
  }
  FAST_HOST_DEVICE Index end(Index window, Index length) const {
    const Index place = window * stride - padding + size;
    return place < length ? place : length;
  }
  /// The first and last window that a place of a side is in.
  FAST_HOST_DEVICE Index first_over(Index place) const {
    return place + padding < size ? 0 : (place + padding - size) / stride + 1;
  }
  FAST_HOST_DEVICE Index last_over(Index place, Index windows) const {
    const Index window = (place + padding) / stride;
    return window < windows ? window : windows - 1;
  }
};

/// The largest of each window and its place in the image (row · width + column), the first of
/// equals.
struct PoolMax {
  const float* x;
  float* y;
  std::int32_t* places;
  PoolShape shape;

  Index size() const { return shape.samples * shape.out_height * shape.out_width * shape.channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % shape.channels, out = e / shape.channels;
    const Index column = out % shape.out_width, row = out / shape.out_width % shape.out_height;
    const Index image = out / shape.out_width / shape.out_height * shape.height * shape.width;
    Index best = shape.begin(row) * shape.width + shape.begin(column);
    float largest = x[(image + best) * shape.channels + c];
    for (Index r = shape.begin(row); r < shape.end(row, shape.height); ++r)
      for (Index k = shape.begin(column); k < shape.end(column, shape.width); ++k) {
        const float value = x[(image + r * shape.width + k) * shape.channels + c];
        if (value <= largest || largest != largest) continue;  // NaN passes
        largest = value;
        best = r * shape.width + k;
      }
    y[e] = largest;
    places[e] = static_cast<std::int32_t>(best);
  }
};

/// Each place gathers from the windows that it is in.
struct PoolMaxSlopes {
  const float* dy;
  const std::int32_t* places;
  float* dx;
  PoolShape shape;

  Index size() const { return shape.samples * shape.height * shape.width * shape.channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % shape.channels, in = e / shape.channels;
    const Index column = in % shape.width, row = in / shape.width % shape.height;
    const Index images = in / shape.width / shape.height * shape.out_height;
    float sum = 0;
    for (Index r = shape.first_over(row); r <= shape.last_over(row, shape.out_height); ++r)
      for (Index k = shape.first_over(column); k <= shape.last_over(column, shape.out_width); ++k) {
        const Index out = ((images + r) * shape.out_width + k) * shape.channels + c;
        if (places[out] == row * shape.width + column) sum += dy[out];
      }
    dx[e] = sum;
  }
};

/// Images [samples][area][channels] to vectors [samples][channels].
struct PoolMean {
  const float* x;
  float* y;
  Index samples, area, channels;

  Index size() const { return samples * channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const float* first = x + e / channels * area * channels + e % channels;
    float sum = 0;
    for (Index i = 0; i < area; ++i) sum += first[i * channels];
    y[e] = sum / static_cast<float>(area);
  }
};

struct PoolMeanSlopes {
  const float* dy;
  float* dx;
  Index samples, area, channels;

  Index size() const { return samples * area * channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index sample = e / channels / area;
    dx[e] = dy[sample * channels + e % channels] / static_cast<float>(area);
  }
};

/// nn::softmax_cross_entropy for each sample: its loss, whether it is classified rightly, and the
/// gradient of the mean loss unless `slopes` is null.
struct SoftmaxLoss {
  const float* logits;  // [samples][classes]
  const std::int32_t* labels;
  float *slopes, *losses;
  std::int32_t* hits;
  Index samples, classes;

  Index size() const { return samples; }
  FAST_HOST_DEVICE void at(Index sample) const {
    const float* row = logits + sample * classes;
    const Index label = labels[sample];
    Index largest = 0;
    for (Index c = 1; c < classes; ++c)
      if (row[c] > row[largest]) largest = c;
    double total = 0;
    for (Index c = 0; c < classes; ++c) total += static_cast<double>(::expf(row[c] - row[largest]));
    losses[sample] =
        static_cast<float>(::log(total) - static_cast<double>(row[label] - row[largest]));
    hits[sample] = largest == label ? 1 : 0;
    if (slopes == nullptr) return;
    const float scale = 1 / static_cast<float>(samples);
    const float share = scale / static_cast<float>(total);
    for (Index c = 0; c < classes; ++c)
      slopes[sample * classes + c] =
          fused(::expf(row[c] - row[largest]), share, c == label ? -scale : 0.0F);
  }
};

}  // namespace fast::cuda
