#include "sites/outer_step.hpp"

#include <fast/core/error.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "sites/packed_model.hpp"
#include "sites/state_description.hpp"

namespace fast::sites {
namespace {

void require_fitting(const algorithm::Rule& rule) {
  constexpr std::string_view known[] = {"gasloc", "noloco", "diloco"};
  const algorithm::RuleTraits& traits = rule.traits();
  const bool fits = std::ranges::find(known, traits.name) != std::end(known) &&
                    !traits.messages.weights_apart && !traits.messages.surveys;
  require(
      fits, ErrorKind::argument,
      "sites: the rule {} ({}) cannot exchange between sites; take {}, without fragments, changes "
      "and fraction",
      traits.name, traits.parameters, fmt::join(known, ", "));
}

void require_floats(const ParameterLayout& model) {
  for (const TensorView& view : model.views()) {
    require(view.dtype == DType::f32 || view.dtype == DType::f64, ErrorKind::argument,
            "sites: {}; tensors that sites exchange are f32 or f64", describe(view));
  }
}

}  // namespace

OuterStep::OuterStep(const ParameterLayout& model, const algorithm::Rule& rule)
    : weights_(model.size_bytes()), layout_(packed_layout(model, weights_.data())) {
  require_fitting(rule);
  require_floats(model);
  description_ = describe_weights(layout_);
  mixer_ = std::make_unique<combine::HostMixer>(layout_, rule.make(), codec::Options{});
}

/// The weights and the rule's memory, in the order of a state.
std::vector<std::span<std::byte>> OuterStep::parts() const {
  std::vector<std::span<std::byte>> parts{{weights_.data(), weights_.size_bytes()}};
  for (const TensorView& view : mixer_->state())
    parts.emplace_back(static_cast<std::byte*>(view.data), view.size_bytes());
  return parts;
}

std::uint64_t OuterStep::state_bytes() const {
  std::uint64_t bytes = description_.size();
  for (const auto& part : parts()) bytes += part.size();
  return bytes;
}

void OuterStep::start(const ParameterLayout& model) {
  model.gather(weights_.data());
  mixer_->start(true);
}

std::shared_ptr<const AlignedBuffer> OuterStep::publish(const ParameterLayout& model,
                                                        std::int64_t number) {
  model.gather(weights_.data());
  own_ = std::make_shared<AlignedBuffer>(message_bytes());
  const algorithm::RoundInfo info{.round = number};
  mixer_->begin_publish({}, info);
  mixer_->publish({own_->data(), nullptr, message_bytes(), nullptr}, info);
  return mixer_->is_finite() ? own_ : nullptr;
}

void OuterStep::combine(const ParameterLayout& model, std::int64_t number,
                        std::span<const Source> sources, int sites) {
  model.gather(weights_.data());  // steps may have been made since
  combine::Neighborhood near;
  near.own = {own_->data(), nullptr, message_bytes(), nullptr};
  for (const Source& source : sources) {
    near.workers.push_back(static_cast<int>(near.workers.size()));
    near.payloads.push_back({source.message, nullptr, message_bytes(), nullptr});
    near.weights.push_back(source.weight);
    near.self_weight -= source.weight;
  }
  mixer_->combine(near, {.round = number, .workers = sites}, nullptr);
  model.scatter(weights_.data());
}

std::shared_ptr<const AlignedBuffer> OuterStep::state() const {
  auto state = std::make_shared<AlignedBuffer>(state_bytes());
  std::byte* to = state->data();
  for (const auto& part : parts()) to = std::ranges::copy(part, to).out;
  std::ranges::copy(std::as_bytes(std::span(description_)), to);
  return state;
}

void OuterStep::adopt(const ParameterLayout& model, const AlignedBuffer& state) {
  take({state.data(), state.size_bytes()});
  put_back(model);
}

void OuterStep::take(std::span<const std::byte> state) {
  require(state.size() >= state_bytes(), ErrorKind::internal,
          "sites: a state of {} bytes, not of {}", state.size(), state_bytes());
  const std::byte* from = state.data();
  for (const auto& part : parts())
    from = std::ranges::copy_n(from, std::ssize(part), part.begin()).in;
}

/// Its first vector is φ, from which the steps began.
void OuterStep::forget_momentum() {
  for (const TensorView& view : mixer_->state()) {
    if (view.name == "mixer.state.0") continue;
    std::fill_n(static_cast<std::byte*>(view.data), view.size_bytes(), std::byte{0});
  }
  mixer_->take_state();
}

std::vector<TensorView> OuterStep::memory() const {
  std::vector<TensorView> views = mixer_->state();
  for (TensorView& view : views) view.name = "site." + view.name;
  return views;
}

void OuterStep::take_memory(const std::vector<TensorView>& saved) {
  const std::vector<TensorView> own = memory();
  std::vector<const TensorView*> found;
  for (const TensorView& view : own) {
    const auto same = std::ranges::find_if(saved, [&](const TensorView& other) {
      return other.name == view.name && other.shape == view.shape && other.dtype == view.dtype;
    });
    if (same == saved.end()) return;
    found.push_back(&*same);
  }
  for (std::size_t i = 0; i < own.size(); ++i)
    std::memcpy(own[i].data, found[i]->data, own[i].size_bytes());
  mixer_->take_state();
}

}  // namespace fast::sites
