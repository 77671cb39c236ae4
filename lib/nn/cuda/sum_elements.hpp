// Sums over the rows of a matrix [rows][columns], always in the same order. Each thread sums its
// rows. The threads of a block combine their sums pairwise. The sums of blocks are summed in the
// same way.
#pragma once

#include <algorithm>

#include "nn/cuda/layer_elements.hpp"

namespace fast::cuda {

inline constexpr int block_size = 256;  // threads that join their sums
/// What the 132 multiprocessors of an H100 hold at once of a kernel with 80 registers, as sums for
/// batch normalization have. More blocks than that have less to do each, and as much to join.
inline constexpr Index enough_blocks = 3 * 132;

/// Every step-th row from `row` on, for neighboring columns from `column` on.
struct Share {
  Index column, row, end, step;

  FAST_HOST_DEVICE Index count() const { return row < end ? (end - row + step - 1) / step : 0; }
  /// Calls take(load_row(row)). `Batch` rows are loaded before the first one is taken, so that
  /// loads overlap. So are the rest, for which rows are loaded again.
  template <int Batch, class Load, class Take>
  FAST_HOST_DEVICE void each(const Load& load_row, const Take& take) const {
    Index r = row;
    for (; r + (Batch - 1) * step < end; r += Batch * step) {
      decltype(load_row(r)) loaded[Batch];
      for (int i = 0; i < Batch; ++i) loaded[i] = load_row(r + i * step);
      for (int i = 0; i < Batch; ++i) take(loaded[i], r + i * step);
    }
    if (r >= end) return;
    const auto is_there = [&](int i) { return r + i * step < end; };
    decltype(load_row(r)) loaded[Batch];
    for (int i = 0; i < Batch; ++i) loaded[i] = load_row(is_there(i) ? r + i * step : r);
    for (int i = 0; i < Batch; ++i)
      if (is_there(i)) take(loaded[i], r + i * step);
  }
};

/// The distribution of a matrix over blocks of threads. `lanes` threads of a block process
/// neighboring columns, the others further rows. Long rows have several blocks side by side, and
/// `parts` blocks share the rows.
struct Shares {
  Index rows, columns, parts;
  int width, lanes;

  /// Enough threads for a device, with at least four rows per thread. Neighboring threads load 128
  /// bytes.
  template <class V>
  static Shares of(Index rows, Index columns) {
    Shares shares{rows, columns, 1, width_of<V>(columns), 1};
    const int most = shares.width > 1 ? 8 : 32;
    while (shares.lanes < most && shares.tiles() > 1) shares.lanes *= 2;
    shares.parts = std::clamp(rows / (4 * shares.depth()), Index{1},
                              std::max(Index{1}, enough_blocks / shares.tiles()));
    return shares;
  }
  /// For the sum over `parts` of sums [parts][columns].
  static Shares of_sums(Index parts, Index columns) { return {parts, columns, 1, 1, 8}; }

  /// One block per row.
  FAST_HOST_DEVICE static Shares apart(Index rows) { return {rows, 1, rows, 1, 1}; }

  FAST_HOST_DEVICE int depth() const { return block_size / lanes; }
  FAST_HOST_DEVICE Index tiles() const { return (columns / width + lanes - 1) / lanes; }
  FAST_HOST_DEVICE Index blocks() const { return parts * tiles(); }
  /// Number of sums of all blocks, [parts][columns].
  Index size() const { return parts * columns; }
  FAST_HOST_DEVICE Index column(Index block, int thread) const {
    return (block % tiles() * lanes + thread % lanes) * width;
  }
  FAST_HOST_DEVICE Share of(Index block, int thread) const {
    const Index first = column(block, thread), step = parts * depth();
    if (first >= columns) return {0, 0, 0, step};
    return {first, block / tiles() * depth() + thread / lanes, rows, step};
  }
  /// Number of rows of a part.
  FAST_HOST_DEVICE Index rows_of(Index part) const {
    const Index sweeps = rows / (parts * depth()), rest = rows % (parts * depth()) - part * depth();
    return sweeps * depth() + (rest < 0 ? 0 : rest < depth() ? rest : depth());
  }
  /// Calls f(place of the sum of a column, i) in the thread that has combined it as its i-th.
  template <class F>
  FAST_HOST_DEVICE void each_sum(Index block, int thread, const F& f) const {
    const Index first = column(block, thread);
    if (thread >= lanes || first >= columns) return;
    for (int i = 0; i < width; ++i) f(block / tiles() * columns + first + i, i);
  }
};

/// Works in which the threads of a block work together.
template <class Work, class = void>
inline constexpr bool is_block_work = false;
template <class Work>
inline constexpr bool is_block_work<Work, std::void_t<typename Work::Scratch>> = true;

/// The work of one block. each_thread(f) calls f(thread) for all threads of the block and waits.
template <class Work, class EachThread>
FAST_HOST_DEVICE void run_block(const Work& work, Index block, typename Work::Scratch& scratch,
                                const EachThread& each_thread) {
  each_thread([&](int thread) { work.gather(block, thread, scratch); });
  for (int depth = work.shares.depth() / 2; depth > 0; depth /= 2) {
    const int count = depth * work.shares.lanes;
    each_thread([&](int thread) {
      if (thread < count) scratch.join(thread, thread + count, work.shares.width);
    });
  }
  each_thread([&](int thread) { work.finish(block, thread, scratch); });
}

/// `Kinds` sums per column.
template <class T, int Width, int Kinds>
struct SumScratch {
  T sums[Kinds][Width][block_size];

  FAST_HOST_DEVICE void join(int thread, int other, int width) {
    for (int k = 0; k < Kinds; ++k)
      for (int i = 0; i < width; ++i) sums[k][i][thread] += sums[k][i][other];
  }
};

template <int Width>
struct Floats {
  float at[Width];
};
template <int Width, class V>
FAST_HOST_DEVICE Floats<Width> loaded(const V* from) {
  Floats<Width> values;
  load(from, values.at);
  return values;
}

template <class V>
struct ColumnShares {
  using Scratch = SumScratch<float, pack_width<V>, 1>;
  const V* x;
  float* sums;  // [parts][columns]
  Shares shares;

  FAST_HOST_DEVICE void gather(Index block, int thread, Scratch& scratch) const {
    if (shares.width == 1)
      gather_columns<1>(block, thread, scratch);
    else
      gather_columns<pack_width<V>>(block, thread, scratch);
  }
  FAST_HOST_DEVICE void finish(Index block, int thread, const Scratch& scratch) const {
    shares.each_sum(block, thread,
                    [&](Index place, int i) { sums[place] = scratch.sums[0][i][thread]; });
  }

 private:
  template <int Width>
  FAST_HOST_DEVICE void gather_columns(Index block, int thread, Scratch& scratch) const {
    const Share share = shares.of(block, thread);
    float sum[Width] = {};
    share.each<4>([&](Index row) { return loaded<Width>(x + row * shares.columns + share.column); },
                  [&](const Floats<Width>& value, Index) {
                    for (int i = 0; i < Width; ++i) sum[i] += value.at[i];
                  });
    for (int i = 0; i < Width; ++i) scratch.sums[0][i][thread] = sum[i];
  }
};

struct ColumnTotals {
  using Scratch = SumScratch<double, 1, 1>;
  const float* sums;
  float* totals;
  Shares shares;

  FAST_HOST_DEVICE void gather(Index block, int thread, Scratch& scratch) const {
    const Share share = shares.of(block, thread);
    double sum = 0;
    share.each<8>([&](Index row) { return sums[row * shares.columns + share.column]; },
                  [&](float value, Index) { sum += static_cast<double>(value); });
    scratch.sums[0][0][thread] = sum;
  }
  FAST_HOST_DEVICE void finish(Index block, int thread, const Scratch& scratch) const {
    shares.each_sum(block, thread, [&](Index column, int) {
      totals[column] = static_cast<float>(scratch.sums[0][0][thread]);
    });
  }
};

}  // namespace fast::cuda
