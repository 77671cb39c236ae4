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

using Parts = std::vector<std::span<std::byte>>;

std::size_t total(const Parts& parts) {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  return bytes;
}

std::byte* write(const Parts& parts, std::byte* to) {
  for (const auto& part : parts) to = std::ranges::copy(part, to).out;
  return to;
}

void read(const Parts& parts, std::span<const std::byte> bytes) {
  const std::byte* from = bytes.data();
  for (const auto& part : parts)
    from = std::ranges::copy_n(from, std::ssize(part), part.begin()).in;
}

}  // namespace

OuterStep::OuterStep(const ParameterLayout& model, const algorithm::Rule& rule)
    : rule_(rule.traits().name),
      weights_(model.size_bytes()),
      layout_(packed_layout(model, weights_.data())) {
  require_fitting(rule);
  require_floats(model);
  description_ = describe_weights(layout_);
  mixer_ = std::make_unique<combine::HostMixer>(layout_, rule.make(), codec::Options{});
}

std::vector<std::span<std::byte>> OuterStep::memory_parts() const {
  std::vector<std::span<std::byte>> parts;
  for (const TensorView& view : mixer_->state())
    parts.emplace_back(static_cast<std::byte*>(view.data), view.size_bytes());
  return parts;
}

/// The weights and the rule's memory, in the order of a state.
std::vector<std::span<std::byte>> OuterStep::parts() const {
  std::vector<std::span<std::byte>> parts = memory_parts();
  parts.insert(parts.begin(), {weights_.data(), weights_.size_bytes()});
  return parts;
}

std::uint64_t OuterStep::state_bytes() const { return description_.size() + total(parts()); }

void OuterStep::start(const ParameterLayout& model) {
  model.gather(weights_.data());
  mixer_->start(true);
  is_under_way_ = false;
}

std::shared_ptr<const AlignedBuffer> OuterStep::publish(const ParameterLayout& model,
                                                        std::int64_t number) {
  model.gather(weights_.data());
  is_under_way_ = true;
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
  is_under_way_ = false;
}

/// All rules begin with it: the first vector of their memory.
std::byte* OuterStep::phi() const {
  const auto views = mixer_->state();
  const auto found = std::ranges::find(views, "mixer.state.0", &TensorView::name);
  require(found != views.end(), ErrorKind::internal, "sites: the rule {} has no φ", rule_);
  return static_cast<std::byte*>(found->data);
}

/// The steps since the latest exchange are in this site's message. A site that joins must not bring
/// them into the mean once more.
std::shared_ptr<const AlignedBuffer> OuterStep::state() const {
  auto state = std::make_shared<AlignedBuffer>(state_bytes());
  std::byte* const to = write(parts(), state->data());
  std::ranges::copy(std::as_bytes(std::span(description_)), to);
  if (!is_under_way_) return state;
  for_tensors(layout_, [&, phi = phi()]<class T>(const Segment& place, T) {
    if (place.role == Role::parameter)
      std::ranges::copy(elements<T>(place, phi), elements<T>(place, state->data()).begin());
  });
  return state;
}

/// Vectors of the memory have the layout of the weights.
bool OuterStep::is_finite_state(const AlignedBuffer& state) const {
  const std::byte* at = state.data();
  for (const auto& part : parts()) {
    if (part.size() == weights_.size_bytes() && !is_finite(at)) return false;
    at += part.size();
  }
  return true;
}

void OuterStep::adopt(const ParameterLayout& model, const AlignedBuffer& state) {
  require(state.size_bytes() == state_bytes(), ErrorKind::internal,
          "sites: a state of {} bytes, not of {}", state.size_bytes(), state_bytes());
  read(parts(), {state.data(), state.size_bytes()});
  put_back(model);
}

std::shared_ptr<const AlignedBuffer> OuterStep::handover() const {
  const auto parts = memory_parts();
  auto handover = std::make_shared<AlignedBuffer>(total(parts));
  write(parts, handover->data());
  return handover;
}

void OuterStep::take(std::span<const std::byte> handover) {
  const auto parts = memory_parts();
  require(handover.size() >= total(parts), ErrorKind::internal,
          "sites: a memory of {} bytes, not of {}", handover.size(), total(parts));
  read(parts, handover);
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
  for (TensorView& view : views) view.name = fmt::format("site.{}.{}", rule_, view.name);
  return views;
}

bool OuterStep::take_memory(const std::vector<TensorView>& saved) {
  const std::vector<TensorView> own = memory();
  std::vector<const TensorView*> found;
  for (const TensorView& view : own) {
    const auto same = std::ranges::find_if(saved, [&](const TensorView& other) {
      return other.name == view.name && other.shape == view.shape && other.dtype == view.dtype;
    });
    if (same == saved.end()) return false;
    found.push_back(&*same);
  }
  for (std::size_t i = 0; i < own.size(); ++i)
    std::memcpy(own[i].data, found[i]->data, own[i].size_bytes());
  mixer_->take_state();
  return true;
}

}  // namespace fast::sites
