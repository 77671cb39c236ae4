// Batch normalization on GPUs.
#pragma once

#include "nn/cuda/batch_norm_elements.hpp"
#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

template <>
struct GpuPart<nn::BatchNorm> {
  template <class V>
  using Works = WorkList<MomentShares<V>, MomentTotals, FixedMoments, Normalize<V>,
                         NormalizeShares<V>, NormalizeTotals, NormalizeGradients<V>>;
  static constexpr bool takes_relu = true;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::BatchNorm& norm, const Ends& ends,
                     const Values<V>& x, bool relu) {
    const Index channels = ends.in[0], rows = build.samples() * area_of(ends.in),
                count = rows * channels;
    const Index w = build.parameters(channels), b = build.parameters(channels);
    float* running_mean = build.buffers(2 * channels);
    float* running_variance = running_mean + channels;
    const auto epsilon = static_cast<float>(norm.epsilon);
    const Values<V> y = build.values(count);
    const Sums mean = build.sums(channels), scale = build.sums(channels),
               shift = build.sums(channels);
    const auto affine = [=] { return Affine{mean.get(), scale.get(), shift.get(), relu}; };
    const Strips strips = Strips::of<V>(rows, channels);
    if (!build.training()) {
      build.add(FixedMoments{running_mean, running_variance, build.weights(w), build.weights(b),
                             mean.get(), scale.get(), shift.get(), channels, epsilon});
      build.add(Normalize<V>{x.get(), y.get(), affine(), strips});
      return {y, nullptr, true};
    }
    const Shares shares = Shares::of<V>(rows, channels);
    const Shares totals = Shares::of_sums(shares.parts, channels);
    const Sums reciprocal = build.sums(channels);
    {
      const Sums means = build.sums(shares.size()), squares = build.sums(shares.size());
      build.add(MomentShares<V>{x.get(), means.get(), squares.get(), shares});
      build.add(MomentTotals{means.get(), squares.get(), build.weights(w), build.weights(b),
                             mean.get(), scale.get(), shift.get(), reciprocal.get(), running_mean,
                             running_variance, shares, totals, static_cast<float>(norm.momentum),
                             epsilon});
    }
    build.add(Normalize<V>{x.get(), y.get(), affine(), strips});
    const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      const NormalizeInputs<V> inputs{x.get(), dy.get(), affine()};
      const Sums parts = build.sums(shares.size()), products = build.sums(shares.size());
      const Sums alone = build.sums(channels), times = build.sums(channels);
      build.add(NormalizeShares<V>{inputs, parts.get(), products.get(), shares});
      build.add(NormalizeTotals{parts.get(), products.get(), reciprocal.get(), build.gradients(b),
                                build.gradients(w), alone.get(), times.get(), totals, rows});
      if (!wanted) return nullptr;
      Values<V> dx = build.values(count);
      build.add(NormalizeGradients<V>{inputs, alone.get(), times.get(), dx.get(), strips});
      return dx;
    };
    return {y, backward, true};
  }
};

}  // namespace fast::cuda
