#include "combine/device_mixer.hpp"

#include <fmt/format.h>

#include <fast/core/error.hpp>

#include "exchange/shared/seqlock.hpp"

namespace fast::combine {

DeviceMixer::DeviceMixer(ParameterLayout layout, std::shared_ptr<algorithm::Algorithm> algorithm,
                         const codec::Options& codec, std::shared_ptr<Accelerator> accelerator)
    : Mixer(std::make_unique<DeviceMemory>(std::move(layout), accelerator), std::move(algorithm),
            codec, false),
      accelerator_(std::move(accelerator)) {
  for (int s = 0; s < traits().memory.vectors; ++s) state_.push_back(kept());
}

std::vector<TensorView> DeviceMixer::state() {
  std::vector<TensorView> views{view_of("mixer.messages", std::span(&messages_, 1))};
  for (std::size_t s = 0; s < state_.size(); ++s) {
    if (images_.size() == s) images_.emplace_back(layout().size_bytes());
    memory_->copy(images_[s].data(), state_[s].get(), layout().size_bytes());
    views.push_back(view_of(fmt::format("mixer.state.{}", s), images_[s].as<std::uint8_t>()));
  }
  memory_->settle();
  for (TensorView& view : algorithm_->state()) views.push_back(std::move(view));
  return views;
}

void DeviceMixer::take_state() {
  for (std::size_t s = 0; s < images_.size(); ++s) {
    memory_->copy(state_[s].get(), images_[s].data(), layout().size_bytes());
  }
  memory_->settle();
}

void DeviceMixer::run(const Pass& pass) {
  if (pass.next != nullptr) ++messages_;
  const bool starts = pass.kind == Pass::Kind::start;
  if (starts) algorithm_->apply(algorithm::Sweep::start, algorithm::Block<float>{});
  if (pass.kind == Pass::Kind::gather && gathered_.empty()) {
    for (int k = 0; k < traits().messages.vectors; ++k) gathered_.push_back(kept());
  }
  for (const codec::Piece& piece : coded_.pieces()) {
    if (starts && piece.segment.role == Role::buffer) continue;
    accelerator_->run(work_for(pass, piece));
  }
}

ElementWork DeviceMixer::work_for(const Pass& pass, const codec::Piece& piece) const {
  const Segment& segment = piece.segment;
  const bool alone = segment.role == Role::buffer || pass.kind == Pass::Kind::weights;
  ElementWork work;
  work.type = segment.dtype;
  work.slot = piece.kind == codec::Kind::bf16 ? DType::bf16 : segment.dtype;
  if (!alone) work.rule = *device_rule(*algorithm_);
  work.info = pass.info;
  work.info.parameters = layout().parameter_count();
  work.first = piece.first;
  work.count = segment.element_count;
  work.vectors = alone ? 1 : traits().messages.vectors;
  work.current = segment.data;
  for (std::size_t s = 0; s < state_.size(); ++s) {
    work.state[s] = state_[s].get() + segment.offset_bytes;
  }
  work.starts = pass.kind == Pass::Kind::start;
  work.combines = pass.kind == Pass::Kind::combine;
  add_pulls(work, pass, piece);
  if (pass.next != nullptr) add_publication(work, pass, piece);
  return work;
}

void DeviceMixer::add_pulls(ElementWork& work, const Pass& pass, const codec::Piece& piece) const {
  const Neighborhood* near = pass.neighborhood;
  work.pulls = near != nullptr;
  work.buffer = piece.segment.role == Role::buffer;
  const bool looks_at_own = work.pulls || traits().messages.own != algorithm::Own::unused;
  if (pass.own.data != nullptr && looks_at_own && !work.buffer) {
    work.own = pass.own.data + piece.offset_bytes;
  }
  work.stride_bytes = pass.own.stride_bytes;
  if (pass.gathered || pass.kind == Pass::Kind::gather) {
    for (std::size_t k = 0; k < gathered_.size(); ++k) {
      work.gathered[k] = gathered_[k].get() + piece.segment.offset_bytes;
    }
  }
  if (near == nullptr) return;
  require(near->payloads.size() <= max_element_sources, ErrorKind::argument,
          "Worker: {} neighbors of a worker whose tensors are on a device, at most {} are read "
          "there; choose a sparser topology",
          near->payloads.size(), max_element_sources);
  const bool unit = traits().topology.mixing == algorithm::MixingRequirement::unit && !work.buffer;
  for (std::size_t j = 0; j < near->payloads.size(); ++j) {
    work.sources.push_back(near->payloads[j].data + piece.offset_bytes);
    work.weights.push_back(unit ? 1 : near->weights[j]);
  }
}

void DeviceMixer::add_publication(ElementWork& work, const Pass& pass,
                                  const codec::Piece& piece) const {
  work.next = pass.next->data + piece.offset_bytes;
  work.stride_bytes = pass.next->stride_bytes;
  // As HostMixer does it, so that results are the same.
  const bool at_once = work.combines && work.pulls && !work.buffer && !guarded_reads;
  work.average = at_once && traits().plain_average;
  if (traits().messages.weights_apart && pass.kind != Pass::Kind::weights) {
    work.next_weights = pass.next->weights + piece.segment.offset_bytes;
  }
}

}  // namespace fast::combine
