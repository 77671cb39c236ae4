#include "cuda/network/builder.hpp"

namespace fast::cuda {

template <class V>
auto Builder<V>::layer(const nn::BatchNorm& norm, const Shape& in, const Values& x, bool relu)
    -> Made {
  const Index channels = in[0], rows = samples_ * area_of(in), count = rows * channels;
  const Index w = parameters(channels), b = parameters(channels);
  float* running_mean = model_.buffers + std::exchange(buffer_, buffer_ + 2 * channels);
  float* running_variance = running_mean + channels;
  const auto epsilon = static_cast<float>(norm.epsilon);
  const Values y = values(count);
  const Sums mean = sums(channels), scale = sums(channels), shift = sums(channels);
  const auto affine = [=] { return Affine{mean.get(), scale.get(), shift.get(), relu}; };
  const Strips strips = Strips::of<V>(rows, channels);
  if (!training_) {
    add(FixedMoments{running_mean, running_variance, weights(w), weights(b), mean.get(),
                     scale.get(), shift.get(), channels, epsilon});
    add(Normalize<V>{x.get(), y.get(), affine(), strips});
    return {y, nullptr, true};
  }
  const Shares shares = Shares::of<V>(rows, channels);
  const Shares totals = Shares::of_sums(shares.parts, channels);
  const Sums reciprocal = sums(channels);
  {
    const Sums means = sums(shares.size()), squares = sums(shares.size());
    add(MomentShares<V>{x.get(), means.get(), squares.get(), shares});
    add(MomentTotals{means.get(), squares.get(), weights(w), weights(b), mean.get(), scale.get(),
                     shift.get(), reciprocal.get(), running_mean, running_variance, shares, totals,
                     static_cast<float>(norm.momentum), epsilon});
  }
  add(Normalize<V>{x.get(), y.get(), affine(), strips});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const NormalizeInputs<V> inputs{x.get(), dy.get(), affine()};
    const Sums parts = sums(shares.size()), products = sums(shares.size());
    const Sums alone = sums(channels), times = sums(channels);
    add(NormalizeShares<V>{inputs, parts.get(), products.get(), shares});
    add(NormalizeTotals{parts.get(), products.get(), reciprocal.get(), gradients(b), gradients(w),
                        alone.get(), times.get(), totals, rows});
    if (!wanted) return nullptr;
    Values dx = values(count);
    add(NormalizeGradients<V>{inputs, alone.get(), times.get(), dx.get(), strips});
    return dx;
  };
  return {y, backward, true};
}

template <class V>
auto Builder<V>::layer(const nn::GroupNorm& norm, const Shape& in, const Values& x, bool relu)
    -> Made {
  const Index channels = in[0], area = area_of(in), planes = samples_ * channels;
  const Index w = parameters(channels), b = parameters(channels), groups = samples_ * norm.groups;
  const GroupPlaces places{samples_, area, norm.groups, channels / norm.groups};
  const Values y = values(planes * area);
  const Sums mean = sums(groups), reciprocal = sums(groups);
  {
    const Sums means = sums(planes), squares = sums(planes);
    add(PlaneMoments<V>{x.get(), means.get(), squares.get(), samples_, area, channels});
    add(GroupMoments{means.get(), squares.get(), mean.get(), reciprocal.get(), samples_,
                     norm.groups, places.each, area, static_cast<float>(norm.epsilon)});
  }
  add(GroupNormalize<V>{x.get(), y.get(), mean.get(), reciprocal.get(), weights(w), weights(b),
                        places, relu});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const V* after = relu ? y.get() : nullptr;
    const Sums dbias = sums(planes), dweight = sums(planes);
    add(GroupNormalizeShares<V>{x.get(), after, dy.get(), mean.get(), reciprocal.get(), dbias.get(),
                                dweight.get(), places});
    const Shares shares = Shares::of_sums(samples_, channels);
    add(ColumnTotals{dbias.get(), gradients(b), shares});
    add(ColumnTotals{dweight.get(), gradients(w), shares});
    if (!wanted) return nullptr;
    const Sums alone = sums(groups), times = sums(groups);
    add(GroupGradients{dbias.get(), dweight.get(), weights(w), alone.get(), times.get(), places});
    Values dx = values(planes * area);
    add(GroupNormalizeGradients<V>{x.get(), after, dy.get(), mean.get(), reciprocal.get(),
                                   weights(w), alone.get(), times.get(), dx.get(), places});
    return dx;
  };
  return {y, backward, true};
}

#define FAST_INSTANTIATE(V)                                                                       \
  template auto Builder<V>::layer(const nn::BatchNorm&, const Shape&, const Values&, bool)->Made; \
  template auto Builder<V>::layer(const nn::GroupNorm&, const Shape&, const Values&, bool)->Made;
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(BFloat16)
#undef FAST_INSTANTIATE

}  // namespace fast::cuda
