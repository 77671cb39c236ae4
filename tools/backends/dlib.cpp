#include <fast/dlib/backend.hpp>

#include <fast/nn/network.hpp>

#include "backends/backends.hpp"
#include "backends/registry.hpp"

namespace backends {
namespace {

using namespace fast;
namespace d = ::dlib;

using Input = d::input<d::matrix<float>>;
using Mlp = d::loss_multiclass_log<d::fc<10, d::relu<d::fc<256, Input>>>>;
template <class Below>
using PlainConv16 = d::add_layer<d::con_<16, 5, 5, 1, 1, 0, 0>, Below>;
template <class Below>
using Pool = d::max_pool<2, 2, 2, 2, Below>;
using Features = Pool<d::relu<PlainConv16<Pool<d::relu<d::con<6, 5, 5, 1, 1, Input>>>>>>;
using LeNet = d::loss_multiclass_log<d::fc<10, d::relu<d::fc<84, d::relu<d::fc<120, Features>>>>>>;

/// nn's initial weights. dlib has a layer's biases behind its weights, and those of fc layers
/// [inputs x units] where nn has [units x inputs].
void initialize(const nn::ModelSpec& spec, std::uint64_t seed, std::vector<TensorView> layers) {
  nn::Network<float> initial(spec, seed);
  const std::vector<TensorView> from = initial.parameter_views();
  require(2 * layers.size() == from.size(), ErrorKind::internal,
          "dlib: {} layers for {} tensors of {}", layers.size(), from.size(), spec.name);
  // dlib's layers are visited from the outputs to the inputs
  std::ranges::reverse(layers);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TensorView &weights = from[2 * i], &biases = from[2 * i + 1];
    require(layers[i].element_count() == weights.element_count() + biases.element_count(),
            ErrorKind::internal, "dlib: {} does not hold {}", describe(layers[i]),
            describe(weights));
    auto* to = static_cast<float*>(layers[i].data);
    const auto* w = static_cast<const float*>(weights.data);
    const std::size_t count = weights.element_count(), units = biases.element_count();
    const std::size_t inputs = count / units;
    for (std::size_t e = 0; e < count; ++e)
      to[e] = weights.shape.size() == 2 ? w[e % units * inputs + e / units] : w[e];
    std::copy_n(static_cast<const float*>(biases.data), units, to + count);
  }
}

template <class Net, class Solver>
std::unique_ptr<Backend> classifier(const nn::ModelSpec& spec, std::uint64_t seed,
                                    const Solver& solver, double learning_rate) {
  auto net = std::make_unique<Net>();
  d::layer<1>(*net).layer_details().set_num_outputs(std::get<nn::Dense>(spec.layers.back()).units);
  return std::make_unique<fast::dlib::Classifier<Net, Solver>>(
      std::move(net), spec.input, solver, learning_rate,
      [&](const std::vector<TensorView>& layers) { initialize(spec, seed, layers); });
}

template <class Net>
std::unique_ptr<Backend> classifier(const nn::ModelSpec& spec, std::uint64_t seed,
                                    const nn::OptimizerSpec& optimizer) {
  if (const auto* sgd = std::get_if<nn::SgdOptions>(&optimizer)) {
    require(!sgd->nesterov, ErrorKind::argument,
            "--backend dlib: its SGD has no Nesterov form; leave --nesterov out or choose nn");
    return classifier<Net>(
        spec, seed,
        d::sgd(static_cast<float>(sgd->weight_decay), static_cast<float>(sgd->momentum)),
        sgd->learning_rate);
  }
  const auto& adam = std::get<nn::AdamOptions>(optimizer);
  require(!adam.decoupled_decay, ErrorKind::argument,
          "--backend dlib: it has no adamw; choose --optimizer sgd or adam, or another backend");
  return classifier<Net>(spec, seed,
                         d::adam(static_cast<float>(adam.weight_decay),
                                 static_cast<float>(adam.beta1), static_cast<float>(adam.beta2)),
                         adam.learning_rate);
}

}  // namespace

std::unique_ptr<Backend> make_dlib(const nn::ModelSpec& spec, std::uint64_t seed,
                                   const nn::BackendOptions& options) {
  nn::Optimizer<float>(options.optimizer, 1);  // refuses what is out of range
  require(options.clip_norm == 0 && options.accumulate == 1 && options.threads == 1,
          ErrorKind::argument,
          "--backend dlib: it has no clipping, no accumulation and one thread; choose nn or torch "
          "for those");
  require(
      nn::classifies(spec), ErrorKind::argument,
      "--backend dlib: model {} has the loss {} or a label for each step, dlib learns one class "
      "label a sample; choose the backend nn",
      spec.name, nn::name(spec.loss.kind));
  require(
      spec.loss.is_plain(), ErrorKind::argument,
      "--backend dlib: it has no label smoothing and no weights of classes; choose nn or torch");
  if (spec.name == "lenet5" && spec.input == nn::lenet5().input)
    return classifier<LeNet>(spec, seed, options.optimizer);
  const auto classes = std::get<nn::Dense>(spec.layers.back()).units;
  if (spec.name == nn::mlp({784, 256, classes}).name)
    return classifier<Mlp>(spec, seed, options.optimizer);
  fail(ErrorKind::argument,
       "--backend dlib: it has no model {}; choose lenet, mlp or another backend", spec.name);
}

const BackendEntry entries::dlib{make_dlib};

}  // namespace backends
