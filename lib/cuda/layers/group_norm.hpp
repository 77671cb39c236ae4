// Group normalization on GPUs.
#pragma once

#include "cuda/kernels/group_norm_elements.hpp"
#include "cuda/layers/shared.hpp"

namespace fast::cuda {

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
