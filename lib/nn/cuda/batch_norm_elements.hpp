// Batch normalization, as in layer_elements.hpp. A thread processes rows one after another and
// keeps the values of its channels.
#pragma once

#include "nn/cuda/sum_elements.hpp"

namespace fast::cuda {

/// y = (x - mean)·scale + shift for each channel. With `relu`, then max(y, 0). The vectors
/// [channels] begin at a multiple of 16 bytes.
struct Affine {
  const float *mean, *scale, *shift;
  bool relu;
};

/// An affine map of neighboring channels.
template <class V, int Width>
struct AffineOf {
  float mean[Width], scale[Width], shift[Width];

  FAST_HOST_DEVICE AffineOf(const Affine& affine, Index channel) {
    load(affine.mean + channel, mean);
    load(affine.scale + channel, scale);
    load(affine.shift + channel, shift);
  }
  FAST_HOST_DEVICE float value(float x, int i) const {
    return fused(x - mean[i], scale[i], shift[i]);
  }
  /// Whether the stored value is above 0.
  FAST_HOST_DEVICE bool passes(float x, int i) const {
    V stored;
    convert(value(x, i), stored);
    return get(&stored, 0) > 0;
  }
};

/// For the values of each thread: the mean of each column and the sum of squared differences from
/// it.
template <int Width>
struct MomentScratch {
  float means[Width][block_size], squares[Width][block_size];
  float counts[block_size];

  /// Chan, Golub & LeVeque 1983.
  FAST_HOST_DEVICE void join(int thread, int other, int width) {
    const float count = counts[thread], more = counts[other];
    if (more == 0) return;
    const float share = more / (count + more);
    for (int i = 0; i < width; ++i) {
      const float apart = means[i][other] - means[i][thread];
      means[i][thread] = fused(apart, share, means[i][thread]);
      squares[i][thread] += fused(apart * apart, count * share, squares[i][other]);
    }
    counts[thread] = count + more;
  }
};

/// The moments of parts of the rows. A thread sums differences from its first value, which avoids
/// cancellation if the mean is far from 0.
template <class V>
struct MomentShares {
  using Scratch = MomentScratch<pack_width<V>>;
  const V* x;
  float *means, *squares;  // [parts][channels] each
  Shares shares;

  FAST_HOST_DEVICE void gather(Index block, int thread, Scratch& scratch) const {
    if (shares.width == 1)
      gather_columns<1>(block, thread, scratch);
    else
      gather_columns<pack_width<V>>(block, thread, scratch);
  }
  FAST_HOST_DEVICE void finish(Index block, int thread, const Scratch& scratch) const {
    shares.each_sum(block, thread, [&](Index place, int i) {
      means[place] = scratch.means[i][thread];
      squares[place] = scratch.squares[i][thread];
    });
  }

 private:
  template <int Width>
  FAST_HOST_DEVICE void gather_columns(Index block, int thread, Scratch& scratch) const {
    const Share share = shares.of(block, thread);
    const auto load_row = [&](Index row) {
      return loaded<Width>(x + row * shares.columns + share.column);
    };
    const auto count = static_cast<float>(share.count());
    const Floats<Width> origin = count > 0 ? load_row(share.row) : Floats<Width>{};
    float sum[Width] = {}, square[Width] = {};
    share.each<4>(load_row, [&](const Floats<Width>& row, Index) {
      for (int i = 0; i < Width; ++i) {
        const float value = row.at[i] - origin.at[i];
        sum[i] += value;
        square[i] = fused(value, value, square[i]);
      }
    });
    for (int i = 0; i < Width; ++i) {
      const float mean = count > 0 ? sum[i] / count : 0;
      scratch.means[i][thread] = origin.at[i] + mean;
      scratch.squares[i][thread] = fused(-sum[i], mean, square[i]);
    }
    scratch.counts[thread] = count;
  }
};

/// Combines the moments of parts, in f64 and relative to the mean of the first part. Updates the
/// running statistics.
struct MomentTotals {
  using Scratch = SumScratch<double, 1, 2>;
  const float *means, *squares;  // of `parts`
  const float *weight, *bias;    // [channels], as are all below
  float *mean, *scale, *shift;   // those of an Affine
  float* reciprocal;             // 1 / sqrt(variance + epsilon)
  float *running_mean, *running_variance;
  Shares parts, shares;
  float momentum, epsilon;

  FAST_HOST_DEVICE void gather(Index block, int thread, Scratch& scratch) const {
    struct Part {
      float mean, square;
    };
    const Share share = shares.of(block, thread);
    const auto origin = static_cast<double>(means[share.column]);
    double sum = 0, square = 0;
    share.each<8>(
        [&](Index p) {
          const Index place = p * shares.columns + share.column;
          return Part{means[place], squares[place]};
        },
        [&](const Part& part, Index p) {
          const auto count = static_cast<double>(parts.rows_of(p));
          const double apart = static_cast<double>(part.mean) - origin;
          sum = fused(count, apart, sum);
          square += fused(count * apart, apart, static_cast<double>(part.square));
        });
    scratch.sums[0][0][thread] = sum;
    scratch.sums[1][0][thread] = square;
  }
  FAST_HOST_DEVICE void finish(Index block, int thread, const Scratch& scratch) const {
    shares.each_sum(block, thread, [&](Index c, int) {
      const auto count = static_cast<double>(parts.rows);
      const double apart = scratch.sums[0][0][thread] / count;
      const double about = fused(-apart * count, apart, scratch.sums[1][0][thread]);
      const double square = about < 0 ? 0 : about;
      mean[c] = static_cast<float>(static_cast<double>(means[c]) + apart);
      reciprocal[c] = static_cast<float>(1 / root(square / count + static_cast<double>(epsilon)));
      scale[c] = reciprocal[c] * weight[c];
      shift[c] = bias[c];
      const auto unbiased = static_cast<float>(square / (count > 1 ? count - 1 : 1));
      running_mean[c] = fused(momentum, mean[c] - running_mean[c], running_mean[c]);
      running_variance[c] = fused(momentum, unbiased - running_variance[c], running_variance[c]);
    });
  }
};

/// The affine map for running statistics.
struct FixedMoments {
  const float *running_mean, *running_variance, *weight, *bias;
  float *mean, *scale, *shift;
  Index channels;
  float epsilon;

  Index size() const { return channels; }
  FAST_HOST_DEVICE void at(Index c) const {
    mean[c] = running_mean[c];
    scale[c] = 1 / root(running_variance[c] + epsilon) * weight[c];
    shift[c] = bias[c];
  }
};

/// The distribution of a matrix over threads that sum nothing: up to 8 rows per thread, fewer for a
/// small matrix.
struct Strips {
  Index rows, columns, step;
  int width;

  template <class V>
  static Strips of(Index rows, Index columns) {
    const int width = width_of<V>(columns);
    const Index enough = enough_blocks * block_size * width / columns;
    return {rows, columns, std::min(rows, std::max((rows + 7) / 8, enough)), width};
  }
  FAST_HOST_DEVICE Index packs() const { return columns / width; }
  Index size() const { return packs() * step; }
  FAST_HOST_DEVICE Share of(Index e) const {
    return {e % packs() * width, e / packs(), rows, step};
  }
};

/// `more` is added before the ReLU, unless it is null.
template <class V>
struct Normalize {
  const V* x;
  V* y;
  Affine affine;
  Strips strips;
  const V* more = nullptr;

  Index size() const { return strips.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    if (strips.width == 1)
      strip<1>(strips.of(e));
    else
      strip<pack_width<V>>(strips.of(e));
  }

 private:
  template <int Width>
  struct Row {
    Floats<Width> x, more;
  };
  template <int Width>
  FAST_HOST_DEVICE void strip(const Share& share) const {
    const AffineOf<V, Width> of(affine, share.column);
    if (more != nullptr) return strip_and_more<Width>(share, of);
    share.each<4>([&](Index row) { return loaded<Width>(x + row * strips.columns + share.column); },
                  [&](Floats<Width> value, Index row) {
                    for (int i = 0; i < Width; ++i)
                      value.at[i] = after_relu(of.value(value.at[i], i), affine.relu);
                    store(value.at, y + row * strips.columns + share.column);
                  });
  }
  template <int Width>
  FAST_HOST_DEVICE void strip_and_more(const Share& share, const AffineOf<V, Width>& of) const {
    share.each<2>(
        [&](Index row) {
          const Index place = row * strips.columns + share.column;
          return Row<Width>{loaded<Width>(x + place), loaded<Width>(more + place)};
        },
        [&](Row<Width> row, Index r) {
          for (int i = 0; i < Width; ++i)
            row.x.at[i] = after_relu(of.value(row.x.at[i], i) + row.more.at[i], affine.relu);
          store(row.x.at, y + r * strips.columns + share.column);
        });
  }
};

/// The inputs of gradients. The ReLU mask is recomputed from x, which is faster than loading y.
template <class V>
struct NormalizeInputs {
  const V *x, *dy;
  Affine affine;

  template <int Width>
  struct Row {
    Floats<Width> x, grad;
  };
  template <int Width>
  FAST_HOST_DEVICE Row<Width> row(Index place) const {
    return {loaded<Width>(x + place), loaded<Width>(dy + place)};
  }
  /// The gradient of the output of the normalization.
  template <int Width>
  FAST_HOST_DEVICE float grad(const Row<Width>& row, const AffineOf<V, Width>& of, int i) const {
    return !affine.relu || of.passes(row.x.at[i], i) ? row.grad.at[i] : 0;
  }
};

/// Σ dy and Σ dy·(x - mean) of parts of the rows.
template <class V>
struct NormalizeShares {
  using Scratch = SumScratch<float, pack_width<V>, 2>;
  NormalizeInputs<V> inputs;
  float *sums, *products;  // [parts][channels] each
  Shares shares;

  FAST_HOST_DEVICE void gather(Index block, int thread, Scratch& scratch) const {
    if (shares.width == 1)
      gather_columns<1>(block, thread, scratch);
    else
      gather_columns<pack_width<V>>(block, thread, scratch);
  }
  FAST_HOST_DEVICE void finish(Index block, int thread, const Scratch& scratch) const {
    shares.each_sum(block, thread, [&](Index place, int i) {
      sums[place] = scratch.sums[0][i][thread];
      products[place] = scratch.sums[1][i][thread];
    });
  }

 private:
  template <int Width>
  FAST_HOST_DEVICE void gather_columns(Index block, int thread, Scratch& scratch) const {
    const Share share = shares.of(block, thread);
    const AffineOf<V, Width> of(inputs.affine, share.column);
    float sum[Width] = {}, product[Width] = {};
    share.each<2>(
        [&](Index row) { return inputs.template row<Width>(row * shares.columns + share.column); },
        [&](const auto& row, Index) {
          for (int i = 0; i < Width; ++i) {
            const float grad = inputs.grad(row, of, i);
            sum[i] += grad;
            product[i] = fused(grad, row.x.at[i] - of.mean[i], product[i]);
          }
        });
    for (int i = 0; i < Width; ++i) {
      scratch.sums[0][i][thread] = sum[i];
      scratch.sums[1][i][thread] = product[i];
    }
  }
};

/// The gradients of bias (Σ dy) and weight (Σ dy·x̂), and the values that follow from them for the
/// gradients of x.
struct NormalizeTotals {
  using Scratch = SumScratch<double, 1, 2>;
  const float *sums, *products;  // [parts][channels] each
  const float* reciprocal;       // [channels], as are all below
  float *dbias, *dweight;
  float *alone, *times;  // dbias / rows; dweight / rows · reciprocal
  Shares shares;
  Index rows;

  FAST_HOST_DEVICE void gather(Index block, int thread, Scratch& scratch) const {
    struct Part {
      float sum, product;
    };
    const Share share = shares.of(block, thread);
    double sum = 0, product = 0;
    share.each<8>(
        [&](Index p) {
          const Index place = p * shares.columns + share.column;
          return Part{sums[place], products[place]};
        },
        [&](const Part& part, Index) {
          sum += static_cast<double>(part.sum);
          product += static_cast<double>(part.product);
        });
    scratch.sums[0][0][thread] = sum;
    scratch.sums[1][0][thread] = product;
  }
  FAST_HOST_DEVICE void finish(Index block, int thread, const Scratch& scratch) const {
    shares.each_sum(block, thread, [&](Index c, int) {
      const float share = 1 / static_cast<float>(rows);
      dbias[c] = static_cast<float>(scratch.sums[0][0][thread]);
      dweight[c] = static_cast<float>(scratch.sums[1][0][thread]) * reciprocal[c];
      alone[c] = share * dbias[c];
      times[c] = share * dweight[c] * reciprocal[c];
    });
  }
};

template <class V>
struct NormalizeGradients {
  NormalizeInputs<V> inputs;
  const float *alone, *times;
  V* dx;
  Strips strips;

  Index size() const { return strips.size(); }
  FAST_HOST_DEVICE void at(Index e) const {
    if (strips.width == 1)
      strip<1>(strips.of(e));
    else
      strip<pack_width<V>>(strips.of(e));
  }

 private:
  template <int Width>
  FAST_HOST_DEVICE void strip(const Share& share) const {
    const AffineOf<V, Width> of(inputs.affine, share.column);
    const auto less = loaded<Width>(alone + share.column);
    const auto factor = loaded<Width>(times + share.column);
    share.each<2>(
        [&](Index row) { return inputs.template row<Width>(row * strips.columns + share.column); },
        [&](const auto& row, Index r) {
          float out[Width];
          for (int i = 0; i < Width; ++i) {
            const float centered = inputs.grad(row, of, i) - less.at[i];
            out[i] = of.scale[i] * fused(of.mean[i] - row.x.at[i], factor.at[i], centered);
          }
          store(out, dx + r * strips.columns + share.column);
        });
  }
};

}  // namespace fast::cuda
