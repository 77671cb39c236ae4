#include "fast_train/resolve.hpp"

#include <fmt/core.h>
#include <variant>

namespace fast_train {

using namespace fast;

nn::OptimizerSpec optimizer_of(const Options& o) {
  nn::OptimizerSpec spec = nn::optimizer_spec(o.optimizer);
  std::visit(
      [&](auto& options) {
        options.learning_rate = o.learning_rate.value_or(options.learning_rate);
        options.weight_decay = o.weight_decay.value_or(options.weight_decay);
      },
      spec);
  if (auto* sgd = std::get_if<nn::SgdOptions>(&spec)) {
    sgd->momentum = *momentum_of(o);
    sgd->nesterov = o.nesterov;
  } else {
    auto& adam = std::get<nn::AdamOptions>(spec);
    adam.beta1 = o.beta1.value_or(adam.beta1);
    adam.beta2 = o.beta2.value_or(adam.beta2);
  }
  return spec;
}

std::optional<double> momentum_of(const Options& o) {
  if (o.optimizer != "sgd") return std::nullopt;
  return o.momentum.value_or(brings_momentum(o) ? 0 : nn::SgdOptions{}.momentum);
}

double learning_rate_of(const Options& o) {
  return std::visit([](const auto& spec) { return spec.learning_rate; }, optimizer_of(o));
}

std::string optimizer_text(const Options& o) {
  const nn::OptimizerSpec spec = optimizer_of(o);
  std::string text = o.optimizer;
  if (const auto momentum = momentum_of(o); momentum && *momentum > 0) {
    text += fmt::format(", {} {}", o.nesterov ? "Nesterov momentum" : "momentum", *momentum);
  }
  const double decay = std::visit([](const auto& each) { return each.weight_decay; }, spec);
  if (decay > 0) text += fmt::format(", weight decay {}", decay);
  return text;
}

int prefetch_of(const Options& o) {
  const bool waits_for_data = o.device != "cpu" || is_stream(o);
  return o.prefetch.value_or(waits_for_data ? 2 : 0);
}

Options resolved(Options o) {
  const nn::OptimizerSpec spec = optimizer_of(o);
  std::visit(
      [&](const auto& optimizer) {
        o.learning_rate = optimizer.learning_rate;
        o.weight_decay = optimizer.weight_decay;
      },
      spec);
  if (const auto* sgd = std::get_if<nn::SgdOptions>(&spec)) {
    o.momentum = sgd->momentum;
  } else {
    o.beta1 = std::get<nn::AdamOptions>(spec).beta1;
    o.beta2 = std::get<nn::AdamOptions>(spec).beta2;
  }
  o.prefetch = prefetch_of(o);
  return o;
}

}  // namespace fast_train
