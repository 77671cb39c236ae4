#include "cuda/builder.hpp"

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
  const Sums reciprocal = sums(channels);
  const Shares shares = shares_of(rows, channels);
  if (!training_) {
    add(Reciprocals{running_variance, reciprocal.get(), channels, epsilon});
    add(Normalize<V>{x.get(), y.get(), running_mean, reciprocal.get(), weights(w), weights(b),
                     channels, count, relu});
    return {y, nullptr, true};
  }
  const Sums mean = sums(channels), means = sums(shares.size()), squares = sums(shares.size());
  add(MomentShares<V>{x.get(), means.get(), squares.get(), shares});
  add(MomentTotals{means.get(), squares.get(), mean.get(), reciprocal.get(), running_mean,
                   running_variance, shares, static_cast<float>(norm.momentum), epsilon});
  add(Normalize<V>{x.get(), y.get(), mean.get(), reciprocal.get(), weights(w), weights(b), channels,
                   count, relu});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const V* after = relu ? y.get() : nullptr;
    const Sums dbias = sums(shares.size()), dweight = sums(shares.size());
    add(NormalizeShares<V>{x.get(), after, dy.get(), mean.get(), reciprocal.get(), dbias.get(),
                           dweight.get(), shares});
    add(ColumnTotals{dbias.get(), gradients(b), shares});
    add(ColumnTotals{dweight.get(), gradients(w), shares});
    if (!wanted) return nullptr;
    Values dx = values(count);
    add(NormalizeSlopes<V>{x.get(), after, dy.get(), mean.get(), reciprocal.get(), weights(w),
                           gradients(b), gradients(w), dx.get(), channels, rows});
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
    const Shares shares{samples_, channels, samples_};
    add(ColumnTotals{dbias.get(), gradients(b), shares});
    add(ColumnTotals{dweight.get(), gradients(w), shares});
    if (!wanted) return nullptr;
    const Sums alone = sums(groups), times = sums(groups);
    add(GroupSlopes{dbias.get(), dweight.get(), weights(w), alone.get(), times.get(), places});
    Values dx = values(planes * area);
    add(GroupNormalizeSlopes<V>{x.get(), after, dy.get(), mean.get(), reciprocal.get(), weights(w),
                                alone.get(), times.get(), dx.get(), places});
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
