#include "torch/optimizer_state.hpp"

#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace fast::torch {
namespace {

const void* impl(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

/// Keys are pointers from LibTorch 2 on, their text before.
template <class State, class States>
State& state_of(States& states, const at::Tensor& parameter) {
  auto* place = parameter.unsafeGetTensorImpl();
  typename States::key_type key{};
  if constexpr (std::is_same_v<typename States::key_type, std::string>) {
    std::ostringstream text;
    text << place;
    key = text.str();
  } else {
    key = place;
  }
  auto& state = states[key];
  if (!state) state = std::make_unique<State>();
  return static_cast<State&>(*state);
}

}  // namespace

OptimizerState::OptimizerState(::torch::optim::Optimizer& optimizer,
                               const ::torch::nn::Module& module,
                               const std::vector<TensorView>& views, bool mirror)
    : mirror_(mirror) {
  namespace optim = ::torch::optim;
  const at::NoGradGuard no_gradients;
  std::map<const void*, std::size_t> places;
  std::size_t i = 0;
  for (const auto& item : module.named_parameters())
    if (item.value().requires_grad()) places.emplace(impl(item.value()), i++);
  for (auto& group : optimizer.param_groups())
    for (const at::Tensor& p : group.params()) {
      const auto place = places.find(impl(p));
      if (place == places.end()) continue;
      const TensorView& view = views[place->second];
      if (const auto* sgd = dynamic_cast<optim::SGDOptions*>(&group.options())) {
        if (sgd->momentum() == 0 || sgd->dampening() != 0) continue;
        add("momentum.", view,
            state_of<optim::SGDParamState>(optimizer.state(), p).momentum_buffer(), p);
      } else if (const auto* adam = dynamic_cast<optim::AdamOptions*>(&group.options())) {
        if (adam->amsgrad()) continue;
        add_moments(view, state_of<optim::AdamParamState>(optimizer.state(), p), p);
      } else if (const auto* adamw = dynamic_cast<optim::AdamWOptions*>(&group.options())) {
        if (adamw->amsgrad()) continue;
        add_moments(view, state_of<optim::AdamWParamState>(optimizer.state(), p), p);
      }
    }
}

template <class State>
void OptimizerState::add_moments(const TensorView& view, State& state,
                                 const at::Tensor& parameter) {
  add("exp_avg.", view, state.exp_avg(), parameter);
  add("exp_avg_sq.", view, state.exp_avg_sq(), parameter);
  views_.push_back({"step." + view.name, &state.step(), {}, DType::i64, Role::parameter, {}, {}});
}

void OptimizerState::add(const char* prefix, const TensorView& view, at::Tensor& tensor,
                         const at::Tensor& parameter) {
  if (!tensor.defined())
    tensor = at::zeros_like(parameter, parameter.options().requires_grad(false));
  TensorView mine = view;
  mine.name = prefix + view.name;
  mine.data = host_place(tensor);
  views_.push_back(std::move(mine));
}

void* OptimizerState::host_place(const at::Tensor& state) {
  if (state.is_cpu() && !mirror_) return state.data_ptr();
  const at::TensorOptions options = state.options().device(c10::kCPU);
  at::Tensor copy =
      at::empty_strided(state.sizes(), state.strides(), options.pinned_memory(state.is_cuda()));
  copies_.emplace_back(state, copy);
  return copy.data_ptr();
}

const std::vector<TensorView>& OptimizerState::views() {
  const at::NoGradGuard no_gradients;
  // Values that were written and not yet taken are newer.
  for (auto& [state, copy] : copies_)
    if (!shown_) copy.copy_(state);
  shown_ = true;
  return views_;
}

void OptimizerState::to_optimizer() {
  const at::NoGradGuard no_gradients;
  for (auto& [state, copy] : copies_)
    if (shown_) state.copy_(copy);
  shown_ = false;
}

}  // namespace fast::torch
