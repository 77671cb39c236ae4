#include "cuda/network/builder.hpp"

namespace fast::cuda {
namespace {

/// Layers that take the ReLU after them into their own work.
bool takes_relu(const nn::LayerSpec& layer) {
  return std::holds_alternative<nn::Dense>(layer) || std::holds_alternative<nn::Conv2d>(layer) ||
         std::holds_alternative<nn::BatchNorm>(layer) ||
         std::holds_alternative<nn::GroupNorm>(layer) ||
         std::holds_alternative<nn::Residual>(layer);
}

}  // namespace

template <class V>
auto Builder<V>::added(const Values& a, const Values& b, Index count, bool relu) -> Values {
  auto* last = works_.empty() ? nullptr : std::get_if<Normalize<V>>(&works_.back());
  if (last != nullptr && !last->affine.relu && last->more == nullptr) {
    const bool first = last->y == a.get();
    if (first || last->y == b.get()) {
      last->more = (first ? b : a).get();
      last->affine.relu = relu;
      return first ? a : b;
    }
  }
  const Values y = values(count);
  add(Add<V>{a.get(), b.get(), y.get(), count, relu});
  return y;
}

template <class V>
auto Builder<V>::rectified_sum(const Values& y, const Values& dy, Index count, bool relu)
    -> Values {
  const bool own = std::exchange(own_grads_, nullptr) == dy.get();
  auto* last = std::get_if<Add<V>>(&works_.back());
  if (!relu || !own || last == nullptr || last->out != dy.get())
    return rectified(y, dy, count, relu);
  last->gate = y.get();
  return dy;
}

template <class V>
auto Builder<V>::layer(const nn::Residual& residual, const Shape& in, const Values& x, bool relu)
    -> Made {
  const Index out_count = samples_ * elements_of(nn::shapes_through(residual.body, in).back());
  const Index in_count = samples_ * elements_of(in);
  const auto body = std::make_shared<Chain>(through(residual.body, in, x));
  const auto shortcut = std::make_shared<Chain>(through(residual.shortcut, in, x));
  const Values y = added(body->y, shortcut->y, out_count, relu);
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const Values grads = rectified_sum(y, dy, out_count, relu);
    const Values through_body = back(*body, grads, wanted);
    const Values past_it = back(*shortcut, grads, wanted);
    if (!wanted) return nullptr;
    Values dx = values(in_count);
    add(Add<V>{through_body.get(), past_it.get(), dx.get(), in_count, false});
    own_grads_ = dx.get();
    return dx;
  };
  return {y, backward, body->trained() || shortcut->trained()};
}

template <class V>
auto Builder<V>::through(const std::vector<nn::LayerSpec>& layers, const Shape& input, Values x)
    -> Chain {
  const std::vector<Shape> in = nn::shapes_through(layers, input);
  Chain chain{std::move(x), {}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool relu = takes_relu(layers[i]) && i + 1 < layers.size() &&
                      std::holds_alternative<nn::Relu>(layers[i + 1]);
    Made made =
        std::visit([&](const auto& spec) { return layer(spec, in[i], chain.y, relu); }, layers[i]);
    chain.y = std::move(made.y);
    // What only gradients need is not kept in evaluation.
    if (training_) chain.stages.push_back({std::move(made.backward), made.trained});
    if (relu) ++i;
  }
  return chain;
}

template <class V>
auto Builder<V>::back(const Chain& chain, Values dy, bool wanted) -> Values {
  std::size_t first = 0;  // whose inputs' gradients nothing needs
  while (!wanted && first < chain.stages.size() && !chain.stages[first].trained) ++first;
  for (std::size_t i = chain.stages.size(); i-- > first;)
    dy = chain.stages[i].backward(dy, wanted || i > first);
  return wanted ? dy : nullptr;
}

template <class V>
Program Builder<V>::build(const nn::ModelSpec& spec) {
  const std::vector<Shape> shapes = nn::shapes(spec);
  const Shape& in = shapes.front();
  const Index classes = shapes.back()[0];
  const Index count = samples_ * elements_of(in);
  const Sums inputs = sums(count), losses = sums(samples_);
  const auto labels = memory_.take<std::int32_t>(samples_);
  const auto hits = memory_.take<std::int32_t>(samples_);
  const bool planar = in.size() == 3 && in[0] > 1;
  Values x;
  if (planar)
    x = swapped(inputs.get(), samples_, in[0], area_of(in));
  else if constexpr (exact)
    x = inputs;
  else
    x = converted(inputs.get(), count);
  const Chain chain = through(spec.layers, in, std::move(x));
  const Values grads = training_ ? values(samples_ * classes) : nullptr;
  add(SoftmaxLoss<V>{chain.y.get(), labels.get(), grads.get(), losses.get(), hits.get(), samples_,
                     classes});
  if (training_) back(chain, grads, false);
  return {samples_, inputs.get(), labels.get(), losses.get(), hits.get(), std::move(works_)};
}

Program build_program(const nn::ModelSpec& spec, Index samples, bool training, Precision precision,
                      const ModelMemory& model, const Allocate& allocate) {
  if (precision == Precision::bf16)
    return Builder<BFloat16>(samples, training, model, allocate).build(spec);
  return Builder<float>(samples, training, model, allocate).build(spec);
}

}  // namespace fast::cuda
