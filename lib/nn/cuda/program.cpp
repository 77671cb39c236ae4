#include <numeric>

#include "nn/cuda/builder.hpp"
#include "nn/noise.hpp"

namespace fast::cuda {
namespace {

bool takes_relu(const nn::LayerSpec& layer) {
  return std::visit(
      [](const auto& spec) {
        using Spec = std::decay_t<decltype(spec)>;
        if constexpr (HasGpuPart<Spec>)
          return GpuPart<Spec>::takes_relu;
        else
          return false;
      },
      layer);
}

}  // namespace

void require_exact_tokens(bool exact, Index tokens) {
  constexpr Index exact_in_bf16 = 257;
  require(exact || tokens <= exact_in_bf16, ErrorKind::argument,
          "cuda: an embedding of {} tokens in bf16, which holds whole numbers to 256; choose the "
          "precision f32 or tf32",
          tokens);
}

void refuse_gradient_of_tokens() {
  fail(ErrorKind::argument,
       "cuda: an embedding behind layers with parameters; tokens have no gradient, so put it "
       "first");
}

template <class V>
Made<V> Builder<V>::add_layer(const nn::LayerSpec& layer, const Ends& ends, const Values<V>& x,
                              bool relu) {
  return std::visit(
      [&](const auto& spec) -> Made<V> {
        using Spec = std::decay_t<decltype(spec)>;
        require_gpu_part<Spec>(HasGpuPart<Spec> ? "" : nn::describe(layer));
        if constexpr (HasGpuPart<Spec>)
          return GpuPart<Spec>::add(*this, spec, ends, x, relu);
        else
          return {};
      },
      layer);
}

template <class V>
Chain<V> Builder<V>::through(const std::vector<nn::LayerSpec>& layers, const Shape& input,
                             Values<V> x, Index list) {
  const std::vector<Shape> shapes = nn::shapes_through(layers, input);
  const Index outer = place_;
  Chain<V> chain{std::move(x), {}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool relu = takes_relu(layers[i]) && i + 1 < layers.size() &&
                      std::holds_alternative<nn::Relu>(layers[i + 1]);
    place_ = nn::place_in_list(list, i);
    Made<V> made = add_layer(layers[i], {shapes[i], shapes[i + 1]}, chain.y, relu);
    chain.y = std::move(made.y);
    // Evaluation frees what only gradients need.
    if (training_) chain.stages.push_back({std::move(made.backward), made.trained});
    if (relu) ++i;
  }
  place_ = outer;
  return chain;
}

template <class V>
std::shared_ptr<std::uint64_t> Builder<V>::noise() {
  if (!noise_) {
    noise_ = take<std::uint64_t>(samples_);
    drawn_.noise = noise_.get();
    add(drawn_);
  }
  return noise_;
}

template <class V>
Values<V> Builder<V>::back(const Chain<V>& chain, Values<V> dy, bool wanted) {
  std::size_t first = 0;  // before it, no layer needs gradients
  while (!wanted && first < chain.stages.size() && !chain.stages[first].trained) ++first;
  for (std::size_t i = chain.stages.size(); i-- > first;)
    dy = chain.stages[i].backward(dy, wanted || i > first);
  return wanted ? dy : nullptr;
}

Index losses_of(const nn::ModelSpec& spec, Index samples) {
  const Shape output = nn::shapes(spec).back();
  const bool labeled = spec.loss.kind == nn::Loss::cross_entropy;
  return samples * elements_of(output) / (labeled ? output.back() : 1);
}

namespace {

ClassShape shape_of(const nn::LossSpec& loss, const ModelMemory& model, Index classes,
                    const std::int32_t* mixed, const float* share) {
  const std::vector<double>& weights = loss.class_weights;
  return {weights.empty() ? nullptr : model.class_weights, static_cast<float>(loss.smoothing),
          static_cast<float>(weights.empty() ? static_cast<double>(classes)
                                             : std::reduce(weights.begin(), weights.end())),
          mixed, share};
}

}  // namespace

template <class V>
Program Builder<V>::build(const nn::ModelSpec& spec) {
  const std::vector<Shape> shapes = nn::shapes(spec);
  const Shape &in = shapes.front(), &out = shapes.back();
  const bool labeled = spec.loss.kind == nn::Loss::cross_entropy;
  const Index count = samples_ * elements_of(in), outputs = samples_ * elements_of(out);
  const Index learned = losses_of(spec, samples_);
  const Sums inputs = sums(count), losses = sums(learned);
  const auto labels = memory_.take<std::int32_t>(labeled ? learned : 1);
  const auto hits = memory_.take<std::int32_t>(labeled ? learned : 1);
  const bool mixes = labeled && training_;
  const auto mixed = mixes ? memory_.take<std::int32_t>(learned) : nullptr;
  const Sums targets = labeled ? nullptr : sums(learned), share = mixes ? sums(1) : nullptr;
  drawn_ = {model_.parameters, inputs.get(),
            nullptr,           static_cast<Index>(nn::parameter_count(spec)),
            samples_,          elements_of(in)};
  const bool planar = in.size() == 3 && in[0] > 1;
  Values<V> x;
  if (planar)
    x = swapped(*this, inputs.get(), samples_, in[0], area_of(in));
  else if constexpr (is_exact<V>)
    x = inputs;
  else
    x = converted(*this, inputs.get(), count);
  const Chain<V> chain = through(spec.layers, in, std::move(x), 0);
  const Values<V> grads = training_ ? values(outputs) : nullptr;
  if (labeled)
    add(SoftmaxLoss<V>{chain.y.get(), labels.get(), grads.get(), losses.get(), hits.get(), learned,
                       out.back(),
                       training_ ? shape_of(spec.loss, model_, out.back(), mixed.get(), share.get())
                                 : ClassShape()});
  else
    add(TargetLoss<V>{chain.y.get(), targets.get(), grads.get(), losses.get(), learned,
                      spec.loss.kind, static_cast<float>(spec.loss.delta)});
  Sums shown;
  if (!training_ && nn::has_measures(spec)) {
    shown = sums(outputs);
    add(SwapLast<V, float>{chain.y.get(), shown.get(), 1, 1, outputs});
  }
  if (training_) back(chain, grads, false);
  return {samples_,    learned,      inputs.get(), labels.get(), mixed.get(),      targets.get(),
          share.get(), losses.get(), hits.get(),   shown.get(),  std::move(works_)};
}

Program build_program(const nn::ModelSpec& spec, Index samples, bool training, Precision precision,
                      const ModelMemory& model, const Allocate& allocate) {
  if (precision == Precision::bf16)
    return Builder<BFloat16>(samples, training, model, allocate).build(spec);
  return Builder<float>(samples, training, model, allocate).build(spec);
}

}  // namespace fast::cuda
