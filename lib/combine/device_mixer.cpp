#include "combine/device_mixer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fast/core/error.hpp>
#include <map>
#include <utility>

#include "combine/shards.hpp"
#include "exchange/shared/seqlock.hpp"

namespace fast::combine {
namespace {
bool is_half(DType type) { return size_bytes(type) == sizeof(BFloat16); }
DType slot_type(const codec::Piece& piece) {
  if (piece.kind == codec::Kind::bf16) return DType::bf16;
  return piece.kind == codec::Kind::fp16 ? DType::f16 : piece.segment.dtype;
}
}  // namespace

DeviceMixer::DeviceMixer(ParameterLayout layout, std::shared_ptr<algorithm::Algorithm> algorithm,
                         const codec::Options& codec, std::shared_ptr<Accelerator> accelerator,
                         std::shared_ptr<codec::HostMessage> message)
    : Mixer(std::make_unique<DeviceMemory>(std::move(layout), accelerator), std::move(algorithm),
            codec, false),
      accelerator_(std::move(accelerator)),
      message_(std::move(message)) {
  if (message_) message_->coder = make_coder();
  work_.widening = has_halves() ? 2 : 1;
  const std::size_t model = this->layout().size_bytes();
  const std::size_t widened = static_cast<std::size_t>(work_.widening) * model;
  for (int s = 0; s < traits().memory.vectors; ++s)
    work_.state[s] = keep(fmt::format("mixer.state.{}", s), widened);
  const bool rounds = has_halves() || message_;
  for (int k = 0; rounds && keeps_payload() && k < traits().messages.vectors; ++k)
    work_.sent[k] = keep(fmt::format("mixer.sent.{}", k), widened);
  if (has_halves()) work_.remainder = keep("mixer.remainder", model);
  looks_ = accelerator_->work()->allocate(2 * sizeof(Looks));
  seen_ = accelerator_->work()->allocate_on_host(sizeof(Looks));
  runs_ = make_tables(0);
}

std::byte* DeviceMixer::keep(std::string name, std::size_t size_bytes) {
  kept_.push_back({std::move(name), size_bytes, accelerator_->work()->allocate(size_bytes)});
  return kept_.back().memory.get();
}

void DeviceMixer::rebind(ParameterLayout layout) {
  Mixer::rebind(std::move(layout));
  runs_ = make_tables(0);
  shards_ = 0;
}

/// 0: the runs are not cut.
std::vector<DeviceMixer::Runs> DeviceMixer::make_tables(std::size_t shards) const {
  const codec::CodedLayout plain(memory_->swept(), codec::Kind::identity);
  const codec::CodedLayout& all = message_ ? plain : coded_;
  std::vector<Runs> made;
  if (shards == 0) add_tables(made, 0, all.pieces());
  for (std::size_t s = 0; s < shards; ++s) {
    std::vector<codec::Piece> pieces;
    for (const codec::Piece& piece : all.pieces())
      if (const auto here = piece_within(piece, shard_part(all.size_bytes(), shards, s)))
        pieces.push_back(*here);
    add_tables(made, s, std::move(pieces));
  }
  return made;
}

/// The tables of shards are made once. No launch uses those that go.
const std::vector<DeviceMixer::Runs>& DeviceMixer::runs_in(std::size_t shards) {
  if (shards == 0) return runs_;
  if (std::exchange(shards_, shards) != shards) {
    memory_->settle();
    in_shards_ = make_tables(shards);
  }
  return in_shards_;
}

void DeviceMixer::add_tables(std::vector<Runs>& to, std::size_t shard,
                             std::vector<codec::Piece> all) const {
  std::map<std::pair<DType, DType>, std::vector<const codec::Piece*>> by_type;
  for (const codec::Piece& piece : all)
    by_type[{piece.segment.dtype, slot_type(piece)}].push_back(&piece);
  for (auto& [types, pieces] : by_type) {
    std::stable_partition(pieces.begin(), pieces.end(), [](const codec::Piece* piece) {
      return piece->segment.role == Role::parameter;
    });
    to.push_back(make_table(shard, types.first, types.second, pieces));
  }
}

DeviceMixer::Runs DeviceMixer::make_table(std::size_t shard, DType type, DType slot,
                                          const std::vector<const codec::Piece*>& pieces) const {
  std::vector<ElementRun> runs;
  RunTable all{}, parameters{};
  for (const codec::Piece* piece : pieces) {
    const Segment& segment = piece->segment;
    const bool is_buffer = segment.role == Role::buffer;
    runs.push_back({segment.data, piece->first, segment.element_count, piece->offset_bytes,
                    segment.offset_bytes, all.chunks, is_buffer ? 1U : 0U});
    all.count += 1;
    all.chunks += chunks_of(segment.element_count);
    if (!is_buffer) parameters = all;
  }
  const std::size_t size_bytes = runs.size() * sizeof(ElementRun);
  Memory table = accelerator_->work()->allocate(size_bytes);
  memory_->copy(table.get(), reinterpret_cast<const std::byte*>(runs.data()), size_bytes);
  memory_->settle();
  all.runs = parameters.runs = reinterpret_cast<const ElementRun*>(table.get());
  return {shard, type, slot, all, parameters, std::move(table)};
}

void DeviceMixer::look(Looks* looks) const {
  ++look_;
  for (const Runs& runs : runs_) {
    ElementWork work;
    work.type = work.slot = runs.type;
    work.table = runs.all;
    work.looks = looks;
    work.number = look_;
    accelerator_->run(work);
  }
}

bool DeviceMixer::has_finite_weights() const {
  look(host_looks());
  Looks found{};
  auto* const to = reinterpret_cast<std::byte*>(&found);
  memory_->copy(to, reinterpret_cast<const std::byte*>(host_looks()), sizeof found);
  memory_->settle();
  return found.last != look_;
}

/// Only messages that are the weights as they are can be taken back. The first one may have been
/// made of anything.
bool DeviceMixer::guard(const Payload& own) {
  const bool plain = coded_.kind() == codec::Kind::identity && !traits().messages.weights_apart;
  if (!plain || has_halves() || !std::exchange(is_trusted_, true)) return false;
  look(guard_looks());
  guard_ = {own.data, look_};
  return true;
}

void DeviceMixer::take_back() {
  if (!guard_) return;
  memory_->copy(seen_.get(), looks_.get(), sizeof(Looks));
  memory_->settle();
  const bool is_bad = reinterpret_cast<const Looks*>(seen_.get())->last == guard_->look;
  if (is_bad) memory_->copy_weights_from(guard_->own);
  guard_.reset();
}

std::uint32_t DeviceMixer::bad_looks() const {
  return std::atomic_ref(reinterpret_cast<Looks*>(seen_.get())->count).load();
}

std::vector<TensorView> DeviceMixer::state() {
  std::int64_t& messages = message_ ? message_->coder.messages() : messages_;
  std::vector<TensorView> views{view_of("mixer.messages", std::span(&messages, 1))};
  if (message_) {
    const auto& errors = message_->coder.errors();
    for (std::size_t k = 0; k < errors.size(); ++k)
      views.push_back(view_of(fmt::format("mixer.error.{}", k), errors[k].as<std::uint8_t>()));
  }
  for (Kept& kept : kept_) {
    if (kept.image.size_bytes() == 0) kept.image = AlignedBuffer(kept.size_bytes);
    memory_->copy(kept.image.data(), kept.memory.get(), kept.size_bytes);
    views.push_back(view_of(kept.name, kept.image.as<std::uint8_t>()));
  }
  memory_->settle();
  for (TensorView& view : algorithm_->state()) views.push_back(std::move(view));
  return views;
}

void DeviceMixer::take_state() {
  for (const Kept& kept : kept_) {
    memory_->copy(kept.memory.get(), kept.image.data(), kept.image.size_bytes());
  }
  memory_->settle();
}

void DeviceMixer::run(const Pass& pass) {
  if (pass.next != nullptr) ++messages_;
  const bool starts = pass.kind == Pass::Kind::start;
  if (starts) {
    algorithm::Block<float> none;
    none.info = pass.info;
    algorithm_->apply(algorithm::Sweep::start, none);
  }
  require(
      pass.kind != Pass::Kind::gather && pass.kind != Pass::Kind::measure, ErrorKind::internal,
      "DeviceMixer: a sweep that gathers or measures; messages on devices do not change while they "
      "are read, and are not measured");
  if (starts) is_trusted_ = false;
  const bool restores =
      guard_ && (pass.kind == Pass::Kind::publish || pass.kind == Pass::Kind::combine);
  const std::size_t shards = pass.neighborhood == nullptr ? 0 : pass.neighborhood->shards.size();
  for (const Runs& runs : runs_in(shards)) {
    ElementWork work = work_for(pass, runs);
    if (restores) restore(work);
    if (work.table.count > 0) accelerator_->run(work);
  }
  if (restores) memory_->copy(seen_.get(), looks_.get(), sizeof(Looks));
  if (restores || starts) guard_.reset();
}

void DeviceMixer::restore(ElementWork& work) const {
  work.own = guard_->own;
  work.restores_after = guard_looks();
  work.number = guard_->look;
}

ElementWork DeviceMixer::work_for(const Pass& pass, const Runs& runs) const {
  const bool alone = pass.kind == Pass::Kind::weights;
  ElementWork work = work_;
  work.type = runs.type;
  work.slot = runs.slot;
  work.starts = pass.kind == Pass::Kind::start;
  work.table = work.starts && !is_half(runs.type) ? runs.parameters : runs.all;
  if (!alone) work.rule = *device_rule(*algorithm_);
  work.info = pass.info;
  work.info.parameters = layout().parameter_count();
  work.vectors = alone ? 1 : traits().messages.vectors;
  work.combines = pass.kind == Pass::Kind::combine;
  add_pulls(work, pass, runs.shard);
  if (pass.next != nullptr) add_publication(work, pass);
  return work;
}

void DeviceMixer::add_pulls(ElementWork& work, const Pass& pass, std::size_t shard) const {
  const Neighborhood* near = pass.neighborhood;
  if (near != nullptr && !near->shards.empty()) near = &near->shards[shard];
  work.pulls = near != nullptr;
  const bool looks_at_own = work.pulls || traits().messages.own != algorithm::Own::unused;
  if (looks_at_own) work.own = pass.own.data;
  work.stride_bytes = pass.own.stride_bytes;
  if (near == nullptr) return;
  require(near->payloads.size() <= max_element_sources, ErrorKind::argument,
          "Worker: {} neighbors of a worker whose tensors are on a device, at most {} are read "
          "there; choose a sparser topology",
          near->payloads.size(), max_element_sources);
  work.unit = traits().topology.mixing == algorithm::MixingRequirement::unit;
  for (const Payload& payload : near->payloads) work.sources.push_back(payload.data);
  work.weights = near->weights;
}

void DeviceMixer::add_publication(ElementWork& work, const Pass& pass) const {
  work.next = pass.next->data;
  work.stride_bytes = pass.next->stride_bytes;
  // As HostMixer does it, so that results are the same.
  work.average = work.combines && work.pulls && !guarded_reads && traits().plain_average &&
                 !is_half(work.type);
  work.sums_first = pass.info.asynchronous || work.slot == DType::f16 || message_;
  if (traits().messages.weights_apart && pass.kind != Pass::Kind::weights) {
    work.next_weights = pass.next->weights;
  }
}

}  // namespace fast::combine
