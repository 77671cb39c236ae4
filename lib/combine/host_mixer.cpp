#include "combine/host_mixer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fast/core/random.hpp>

#include "combine/element_work.hpp"
#include "combine/segment_sweep.hpp"
#include "combine/shards.hpp"
#include "core/floating.hpp"

namespace fast::combine {
namespace {
/// Of a part of a model that one thread sweeps at once. A multiple of all blocks.
constexpr std::size_t part_elements = std::size_t{1} << 16;
}  // namespace

HostMixer::HostMixer(ParameterLayout layout, std::shared_ptr<algorithm::Algorithm> algorithm,
                     const codec::Options& codec, bool sums, int threads)
    : Mixer(std::make_unique<HostMemory>(std::move(layout)), std::move(algorithm), codec, sums),
      widening_(has_halves() ? 2 : 1),
      coder_(make_coder()) {
  const bool rounds =
      has_halves() || codec::record_of(coded_.kind()).encode != nullptr || coded_.sparse().coded();
  keeps_own_ = rounds && keeps_payload();
  if (has_halves()) remainder_ = AlignedBuffer(this->layout().size_bytes());
  for (int s = 0; s < traits().memory.vectors; ++s) state_.push_back(kept());
  for (int k = 0; keeps_own_ && k < traits().messages.vectors; ++k) sent_.push_back(kept());
  if (!sums_ && shares_sweeps(*algorithm_, this->layout().parameter_count(), threads))
    crew_ = std::make_unique<ThreadCrew>(threads);
}

/// What a device can do, threads can. Sums, and entries that are chosen, have an order.
bool HostMixer::shares_sweeps(const algorithm::Algorithm& algorithm, std::size_t parameters,
                              int threads) {
  const algorithm::Messages& messages = algorithm.traits().messages;
  return threads > 1 && parameters > part_elements && device_rule(algorithm).has_value() &&
         !messages.surveys && !messages.sparsity.bounded() && !messages.selection.selects();
}

AlignedBuffer HostMixer::kept() const { return AlignedBuffer(widening_ * layout().size_bytes()); }

std::vector<TensorView> HostMixer::state() {
  std::vector<TensorView> views{view_of("mixer.messages", std::span(&coder_.messages(), 1))};
  const auto add = [&](const char* name, const std::vector<AlignedBuffer>& buffers) {
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      views.push_back(view_of(fmt::format("mixer.{}.{}", name, k), buffers[k].as<std::uint8_t>()));
    }
  };
  add("state", state_);
  add("sent", sent_);
  add("error", coder_.errors());
  if (remainder_.size_bytes() > 0)
    views.push_back(view_of("mixer.remainder", remainder_.as<std::uint8_t>()));
  for (TensorView& view : algorithm_->state()) views.push_back(std::move(view));
  return views;
}

void HostMixer::begin_message(const Pass& pass) {
  coder_.begin_message();
  if (crew_) coder_.errors();  // made before threads need it
  writers_.clear();
  const codec::CodedLayout& message = coded_;
  for (int k = 0; k < traits().messages.vectors; ++k) {
    std::byte* vector = pass.next->vector(k);
    if (message.kind() == codec::Kind::sparse)
      writers_.emplace_back(message.sparse(), vector, coder_.rounding_key(k));
    if (message.kind() == codec::Kind::selected)
      codec::write_combination(vector, selected_by(pass.info.round));
  }
}

/// The seed of the codec is the worker's own.
std::int64_t HostMixer::selected_by(std::int64_t round) const {
  if (!coded_.selected().of_changes) return round;
  return static_cast<std::int64_t>(mix_seed(codec_.seed, static_cast<std::uint64_t>(round)));
}

void HostMixer::sweep(const Pass& pass, const PayloadPart& part) {
  const bool shared = may_share(pass);
  std::vector<Part> parts;
  for (const codec::Piece& whole : coded_.pieces()) {
    const auto piece = part == PayloadPart() ? whole : piece_within(whole, part);
    if (!piece) continue;
    const std::size_t count = piece->segment.element_count;
    if (!shared) {
      sweep_alone(pass, {*piece, 0, count});
      continue;
    }
    for (std::size_t first = 0; first < count; first += part_elements)
      parts.push_back({*piece, first, std::min(count, first + part_elements)});
  }
  if (parts.size() > 1) return share(pass, parts);
  if (!parts.empty()) sweep_alone(pass, std::move(parts.front()));
}

void HostMixer::sweep_alone(const Pass& pass, Part part) {
  sweep(pass, part, false);
  finite_ = finite_ && part.finite;
}

void HostMixer::sweep(const Pass& pass, Part& part, bool shared) {
  with_floating(part.piece.segment.dtype, [&]<class Stored>(Stored) {
    SegmentSweep<Stored>(*this, pass, part, shared).run();
  });
}

/// Where a part stops, the sources are fetched anew, and the threads go on.
void HostMixer::share(const Pass& pass, std::vector<Part>& parts) {
  const auto left = [&] {
    std::size_t count = 0;
    for (const Part& part : parts) count += part.end - part.next;
    return count;
  };
  for (std::size_t before = left(); before > 0;) {
    crew_->each(parts.size(), [&](std::size_t p) { sweep(pass, parts[p], true); });
    const std::size_t after = left();
    if (after > 0) pass.sources->renew(after < before);
    before = after;
  }
  for (const Part& part : parts) finite_ = finite_ && part.finite;
}

bool HostMixer::may_share(const Pass& pass) const {
  using enum Pass::Kind;
  const bool is_elementwise = pass.kind == publish || pass.kind == combine || pass.kind == gather;
  const bool trims = pass.neighborhood != nullptr && pass.neighborhood->trim != nullptr;
  const bool in_order = pass.sources != nullptr && pass.sources->are_arriving();
  return crew_ && is_elementwise && !trims && !in_order;
}

void HostMixer::run(const Pass& pass) {
  if (pass.next != nullptr) begin_message(pass);
  finite_ = true;
  if (pass.kind == Pass::Kind::start) std::ranges::fill(remainder_.as<std::byte>(), std::byte{0});
  if (!takes_updates()) memory_->gather();
  if (pass.kind == Pass::Kind::gather && gathered_.empty()) {
    for (int k = 0; k < traits().messages.vectors; ++k) gathered_.push_back(kept());
  }
  const std::size_t shards = pass.neighborhood == nullptr ? 0 : pass.neighborhood->shards.size();
  for (std::size_t s = 0; s < shards; ++s) {
    Pass of_shard = pass;
    of_shard.neighborhood = &pass.neighborhood->shards[s];
    sweep(of_shard, shard_part(coded_.size_bytes(), shards, s));
  }
  if (shards == 0) sweep(pass, {});
  if (pass.kind == Pass::Kind::combine && !takes_updates()) memory_->scatter();
}

}  // namespace fast::combine
