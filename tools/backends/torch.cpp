#include <ATen/ATen.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <cstring>
#include <fast/core/error.hpp>
#include <fast/nn/network.hpp>
#include <fast/torch/backend.hpp>
#include <limits>
#include <unordered_map>
#include <vector>

#include "backends/backends.hpp"
#include "nn/draws.hpp"
#include "nn/noise.hpp"

namespace backends {

// The choice of nn's dropout on LibTorch: the same values are dropped.

/// Elements first, first + stride, ... of a tensor. Others are not copied from its device.
template <class T>
std::vector<T> every(const at::Tensor& tensor, std::size_t first, std::size_t stride) {
  const auto begin = static_cast<std::int64_t>(first), step = static_cast<std::int64_t>(stride);
  const at::Tensor taken =
      tensor.detach().flatten().slice(0, begin, c10::nullopt, step).cpu().contiguous();
  return {taken.data_ptr<T>(), taken.data_ptr<T>() + taken.numel()};
}

/// As nn::noise_of_model(), of tensors one after the other.
template <class T>
std::uint64_t noise_of_parameters(const std::vector<at::Tensor>& parameters) {
  std::size_t count = 0, next = 0, first = 0;
  for (const at::Tensor& tensor : parameters) count += static_cast<std::size_t>(tensor.numel());
  const std::size_t stride = fast::nn::noise_stride(count);
  std::uint64_t noise = 0;
  for (const at::Tensor& tensor : parameters) {
    const std::size_t end = first + static_cast<std::size_t>(tensor.numel());
    const std::vector<T> chosen =
        next < end ? every<T>(tensor, next - first, stride) : std::vector<T>{};
    for (const T value : chosen) noise = fast::mixed_seed(noise, fast::nn::bits_of(value), 0);
    next += chosen.size() * stride;
    first = end;
  }
  return noise;
}

/// One number for each sample of the inputs, which have been made of floats.
inline std::vector<std::uint64_t> noise_of_samples(std::uint64_t of_model,
                                                   const at::Tensor& inputs) {
  const at::Tensor values = inputs.detach().cpu().to(at::kFloat).contiguous();
  const auto samples = static_cast<std::size_t>(values.size(0));
  const std::size_t size = static_cast<std::size_t>(values.numel()) / samples;
  std::vector<std::uint64_t> noise;
  for (std::size_t s = 0; s < samples; ++s)
    noise.push_back(fast::nn::noise_of_sample(of_model, values.data_ptr<float>() + s * size, size));
  return noise;
}

/// What the values of a batch are multiplied by in a layer at `place`.
inline at::Tensor dropout_factors(const at::Tensor& values, const fast::nn::DropoutMask& mask,
                                  const std::vector<std::uint64_t>& noise, std::int64_t place) {
  const at::Tensor factors = at::empty(values.sizes(), at::kDouble);
  auto* to = factors.data_ptr<double>();
  const std::int64_t size = values.numel() / values.size(0);
  for (const std::uint64_t of_sample : noise) {
    const std::uint64_t seed = fast::nn::DropoutMask::seed(of_sample, place);
    for (std::int64_t e = 0; e < size; ++e) *to++ = mask.masked(1.0, seed, e);
  }
  return factors.to(values.device(), values.scalar_type());
}

namespace {

using namespace fast;
using at::Tensor;
namespace modules = ::torch::nn;

using Function = std::function<Tensor(const Tensor&)>;

/// Inputs as whole numbers. What nn takes for no token throws Error(argument), as there.
Tensor tokens_of(const Tensor& inputs, std::int64_t tokens) {
  const Tensor nearest = inputs.round();
  const Tensor whole = (inputs - nearest).abs() < 1e-3;
  const Tensor known = (nearest >= 0).logical_and(nearest < tokens);
  require(whole.logical_and(known).all().item<bool>(), ErrorKind::argument,
          "torch: embedding: tokens are whole numbers from 0 to {}. Is the data normalized?",
          tokens - 1);
  return nearest.to(at::kLong);
}

/// A ModelSpec as a module, submodules named as nn names them.
class SpecModule : public modules::Module {
 public:
  explicit SpecModule(const nn::ModelSpec& spec)
      : has_noise_(nn::has_dropout(spec.layers)), forward_(sequence(spec.layers, spec.input, 0)) {}
  Tensor forward(const Tensor& inputs) {
    if (has_noise_ && is_training()) draw_noise(inputs);
    return forward_(inputs);
  }

 private:
  /// `list` is the list's place (nn/noise.hpp).
  Function sequence(const std::vector<nn::LayerSpec>& layers, const nn::Shape& input,
                    std::int64_t list) {
    const std::vector<nn::Shape> in = nn::shapes_through(layers, input);
    std::vector<Function> functions;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      place_ = nn::place_in_list(list, i);
      functions.push_back(
          std::visit([&](const auto& layer) { return function(layer, in[i]); }, layers[i]));
    }
    return [functions](Tensor x) {
      for (const Function& f : functions) x = f(x);
      return x;
    };
  }

  void draw_noise(const Tensor& inputs) {
    const std::vector<Tensor> all = parameters();
    const bool is_double = inputs.scalar_type() == at::kDouble;
    noise_ = noise_of_samples(
        is_double ? noise_of_parameters<double>(all) : noise_of_parameters<float>(all), inputs);
  }

  template <class Holder>
  Function keep(const char* kind, Holder holder) {
    register_module(fmt::format("{}{}", kind, ++counts_[kind]), holder);
    return [holder](const Tensor& x) mutable { return holder->forward(x); };
  }

  /// A submodule of these parameters, as yet 0.
  std::vector<Tensor> keep_tensors(
      const char* kind, const std::vector<std::pair<const char*, nn::Shape>>& parameters) {
    const auto module = std::make_shared<modules::Module>();
    register_module(fmt::format("{}{}", kind, ++counts_[kind]), module);
    std::vector<Tensor> tensors;
    for (const auto& [name, shape] : parameters)
      tensors.push_back(module->register_parameter(name, ::torch::zeros(shape)));
    return tensors;
  }

  Function function(const nn::Dense& dense, const nn::Shape& in) {
    return keep("fc", modules::Linear(in.back(), dense.units));
  }
  Function function(const nn::Conv2d& conv, const nn::Shape& in) {
    return keep("conv", modules::Conv2d(modules::Conv2dOptions(in[0], conv.channels, conv.kernel)
                                            .stride(conv.stride)
                                            .padding(conv.padding)
                                            .bias(conv.bias)));
  }
  /// PyTorch takes [sample][feature][step].
  Function function(const nn::Conv1d& conv, const nn::Shape& in) {
    const Function along_steps =
        keep("conv1d_", modules::Conv1d(modules::Conv1dOptions(in[1], conv.channels, conv.kernel)
                                            .stride(conv.stride)
                                            .padding(conv.padding)
                                            .bias(conv.bias)));
    return [along_steps](const Tensor& x) {
      return along_steps(x.transpose(1, 2)).transpose(1, 2).contiguous();
    };
  }
  Function function(const nn::Embedding& embedding, const nn::Shape&) {
    const Function rows = keep("embedding", modules::Embedding(embedding.tokens, embedding.width));
    return
        [rows, tokens = embedding.tokens](const Tensor& x) { return rows(tokens_of(x, tokens)); };
  }
  Function function(const nn::Dropout& dropout, const nn::Shape&) {
    return [this, mask = nn::DropoutMask(dropout.rate), place = place_](const Tensor& x) {
      return is_training() ? x * dropout_factors(x, mask, noise_, place) : x;
    };
  }
  Function function(const nn::BatchNorm& norm, const nn::Shape& in) {
    return keep("bn",
                modules::BatchNorm2d(
                    modules::BatchNorm2dOptions(in[0]).momentum(norm.momentum).eps(norm.epsilon)));
  }
  Function function(const nn::GroupNorm& norm, const nn::Shape& in) {
    return keep(
        "gn", modules::GroupNorm(modules::GroupNormOptions(norm.groups, in[0]).eps(norm.epsilon)));
  }
  Function function(const nn::LayerNorm& norm, const nn::Shape& in) {
    return keep("ln", modules::LayerNorm(modules::LayerNormOptions({in.back()}).eps(norm.epsilon)));
  }
  Function function(const nn::Gelu&, const nn::Shape&) {
    return [](const Tensor& x) { return at::gelu(x); };
  }
  Function function(const nn::Silu&, const nn::Shape&) {
    return [](const Tensor& x) { return at::silu(x); };
  }
  Function function(const nn::Tanh&, const nn::Shape&) {
    return [](const Tensor& x) { return x.tanh(); };
  }
  Function function(const nn::Sigmoid&, const nn::Shape&) {
    return [](const Tensor& x) { return x.sigmoid(); };
  }
  Function function(const nn::LeakyRelu& relu, const nn::Shape&) {
    return [slope = relu.slope](const Tensor& x) { return at::leaky_relu(x, slope); };
  }
  Function function(const nn::Softmax&, const nn::Shape&) {
    return [](const Tensor& x) { return x.softmax(-1); };
  }
  Function function(const nn::Position&, const nn::Shape& in) {
    const Tensor weight = keep_tensors("position", {{"weight", in}}).front();
    return [weight](const Tensor& x) { return x + weight; };
  }
  /// PyTorch takes [step][sample][feature], and adds the mask to the scores.
  Function function(const nn::Attention& attention, const nn::Shape& in) {
    modules::MultiheadAttention module(in[1], attention.heads);
    register_module(fmt::format("attention{}", ++counts_["attention"]), module);
    const Tensor later = at::full({in[0], in[0]}, -std::numeric_limits<double>::infinity()).triu(1);
    return [module, mask = attention.causal ? later : Tensor()](const Tensor& x) mutable {
      const Tensor steps = x.transpose(0, 1);
      const Tensor hidden = mask.defined() ? mask.to(x) : mask;
      return std::get<0>(module->forward(steps, steps, steps, {}, false, hidden))
          .transpose(0, 1)
          .contiguous();
    };
  }
  Function function(const nn::AveragePool& pool, const nn::Shape&) {
    return
        [pool](const Tensor& x) { return at::avg_pool2d(x, pool.size, pool.stride, pool.padding); };
  }
  Function function(const nn::Relu&, const nn::Shape&) {
    return [](const Tensor& x) { return x.relu(); };
  }
  Function function(const nn::MaxPool& pool, const nn::Shape&) {
    return
        [pool](const Tensor& x) { return at::max_pool2d(x, pool.size, pool.stride, pool.padding); };
  }
  Function function(const nn::Flatten&, const nn::Shape&) {
    return [](const Tensor& x) { return x.flatten(1); };
  }
  Function function(const nn::GlobalAveragePool&, const nn::Shape&) {
    return [](const Tensor& x) { return x.mean({2, 3}); };
  }
  Function function(const nn::Lstm& lstm, const nn::Shape& in) {
    const std::int64_t hidden = lstm.hidden;
    const std::vector<Tensor> own = keep_tensors("lstm", {{"weight_ih", {4 * hidden, in[1]}},
                                                          {"weight_hh", {4 * hidden, hidden}},
                                                          {"bias", {4 * hidden}}});
    return [=](const Tensor& x) {
      const Tensor start = at::zeros({1, x.size(0), hidden}, x.options());
      const Tensor y =
          std::get<0>(at::lstm(x, {start, start}, {own[0], own[1], own[2], at::zeros_like(own[2])},
                               true, 1, 0, false, false, true));
      return lstm.every_step ? y : y.select(1, -1);
    };
  }
  Function function(const nn::Gru& gru, const nn::Shape& in) {
    const std::int64_t hidden = gru.hidden;
    const std::vector<Tensor> own = keep_tensors("gru", {{"weight_ih", {3 * hidden, in[1]}},
                                                         {"weight_hh", {3 * hidden, hidden}},
                                                         {"bias_ih", {3 * hidden}},
                                                         {"bias_hh", {3 * hidden}}});
    return [=](const Tensor& x) {
      const Tensor start = at::zeros({1, x.size(0), hidden}, x.options());
      const Tensor y = std::get<0>(at::gru(x, start, own, true, 1, 0, false, false, true));
      return gru.every_step ? y : y.select(1, -1);
    };
  }
  Function function(const nn::Residual& residual, const nn::Shape& in) {
    const std::int64_t block = place_;
    const Function body = sequence(residual.body, in, block);
    const Function shortcut = sequence(residual.shortcut, in, nn::place_of_shortcut(block));
    return [body, shortcut](const Tensor& x) { return body(x) + shortcut(x); };
  }

  template <class Other>
  Function function(const Other& layer, const nn::Shape&) {
    fail(ErrorKind::argument,
         "torch: layer \"{}\" has no module here; choose the backend nn, or add the layer to "
         "tools/backends/torch.cpp",
         nn::describe(nn::LayerSpec(layer)));
  }

  std::unordered_map<std::string, int> counts_;
  std::int64_t place_ = 0;  ///< of the layer that is made
  bool has_noise_;
  std::vector<std::uint64_t> noise_;  ///< by sample of the last batch in training
  Function forward_;
};

fast::torch::Loss loss_of(const nn::ModelSpec& spec) {
  switch (spec.loss.kind) {
    case nn::Loss::mse:
      return fast::torch::Loss::mse;
    case nn::Loss::huber:
      return fast::torch::Loss::huber;
    case nn::Loss::binary_cross_entropy:
      return fast::torch::Loss::binary_cross_entropy;
    default:
      return fast::torch::Loss::cross_entropy;
  }
}

template <class T>
void copy_values(std::vector<TensorView> views, modules::Module& module) {
  const at::NoGradGuard no_gradients;
  std::unordered_map<std::string, const TensorView*> by_name;
  for (const TensorView& view : views) by_name[view.name] = &view;
  for (auto& item : module.named_parameters()) {
    const TensorView& from = *by_name.at(item.key());
    std::memcpy(item.value().template data_ptr<T>(), from.data, from.size_bytes());
  }
}

std::shared_ptr<::torch::optim::Optimizer> optimizer_of(const nn::OptimizerSpec& spec,
                                                        std::vector<Tensor> parameters) {
  namespace optim = ::torch::optim;
  if (const auto* sgd = std::get_if<nn::SgdOptions>(&spec))
    return std::make_shared<optim::SGD>(std::move(parameters), optim::SGDOptions(sgd->learning_rate)
                                                                   .momentum(sgd->momentum)
                                                                   .weight_decay(sgd->weight_decay)
                                                                   .nesterov(sgd->nesterov));
  const auto& adam = std::get<nn::AdamOptions>(spec);
  const auto set = [&](auto options) {
    return options.betas({adam.beta1, adam.beta2})
        .eps(adam.epsilon)
        .weight_decay(adam.weight_decay);
  };
  if (adam.decoupled_decay)
    return std::make_shared<optim::AdamW>(std::move(parameters),
                                          set(optim::AdamWOptions(adam.learning_rate)));
  return std::make_shared<optim::Adam>(std::move(parameters),
                                       set(optim::AdamOptions(adam.learning_rate)));
}

}  // namespace

template <class T>
std::unique_ptr<Backend> make_torch(const nn::ModelSpec& spec, std::uint64_t seed,
                                    const nn::BackendOptions& options,
                                    const fast::torch::ReplicaOptions& replica) {
  nn::Network<T> initial(spec, seed);
  nn::Optimizer<T>(options.optimizer, initial.parameter_count());  // refuses what is out of range
  auto module = std::make_shared<SpecModule>(spec);
  module->to(c10::CppTypeToScalarType<T>::value);
  copy_values<T>(initial.parameter_views(), *module);
  auto optimizer = optimizer_of(options.optimizer, module->parameters());
  return fast::torch::make_backend(
      module, [raw = module.get()](const Tensor& x) { return raw->forward(x); },
      std::move(optimizer),
      {spec.input, options.clip_norm, options.accumulate, options.threads, replica, loss_of(spec),
       spec.loss.delta, spec.loss.smoothing, spec.loss.class_weights});
}

template std::unique_ptr<Backend> make_torch<float>(const nn::ModelSpec&, std::uint64_t,
                                                    const nn::BackendOptions&,
                                                    const fast::torch::ReplicaOptions&);
template std::unique_ptr<Backend> make_torch<double>(const nn::ModelSpec&, std::uint64_t,
                                                     const nn::BackendOptions&,
                                                     const fast::torch::ReplicaOptions&);

}  // namespace backends
