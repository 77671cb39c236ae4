// One sweep of a rule over one piece of the model: what HostMixer does per type of element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/mixing/kernels.hpp>
#include <fast/mixing/robust.hpp>
#include <type_traits>

#include "codec/block.hpp"
#include "combine/host_mixer.hpp"
#include "exchange/shared/seqlock.hpp"

namespace fast::combine {

inline constexpr std::size_t block_bytes = block_elements * sizeof(double);

/// The type in which elements stored as Stored are computed with.
template <class Stored>
using Compute = std::conditional_t<std::is_same_v<Stored, double>, double, float>;

/// Stored elements as values to compute with: in place, or widened into `scratch`.
template <class Stored>
const Compute<Stored>* load(const Stored* from, Compute<Stored>* scratch, std::size_t count) {
  if constexpr (std::is_same_v<Stored, Compute<Stored>>) {
    return from;
  } else {
    codec::widen(scratch, from, count);
    return scratch;
  }
}

/// Values to streaming stores of Stored elements. False if a value becomes infinite by that.
template <class Stored>
bool stream(Stored* to, const Compute<Stored>* from, std::size_t count) {
  if constexpr (std::is_same_v<Stored, Compute<Stored>>) {
    mixing::stream_copy(to, from, count * sizeof(Stored));
    return true;
  } else {
    Stored narrowed[block_elements];
    float widened[block_elements];
    codec::narrow(narrowed, from, count);
    codec::widen(widened, narrowed, count);
    mixing::stream_copy(to, narrowed, count * sizeof(Stored));
    return mixing::all_finite(widened, count);
  }
}

// The value of a 16-bit weight w, which rules compute with, is w plus a remainder. A program that
// moves w moves the value as far. What rounding takes in one round is so there in the next one,
// whatever the program does in between.

inline void add_remainder(float* x, const BFloat16* remainder, std::size_t count) {
  float rest[block_elements];
  codec::widen(rest, remainder, count);
  for (std::size_t e = 0; e < count; ++e) x[e] += rest[e];
}

/// Values to weights, rounded to nearest, and remainders: 0 of weights that are not finite.
template <class Stored>
void split(const float* x, Stored* w, BFloat16* remainder, std::size_t count) {
  float rest[block_elements];
  codec::narrow(w, x, count);
  codec::widen(rest, w, count);
  for (std::size_t e = 0; e < count; ++e) {
    const float lost = x[e] - rest[e];
    rest[e] = std::isfinite(lost) ? lost : 0.0F;
  }
  codec::narrow(remainder, rest, count);
}

template <class T>
const T* at(const Payload& payload, int vector, std::size_t offset_bytes) {
  return reinterpret_cast<const T*>(payload.vector(vector) + offset_bytes);
}

/// Elements of a piece that a thread sweeps: whole blocks.
struct HostMixer::Part {
  codec::Piece piece;
  std::size_t next, end;  ///< those that are left
  bool finite = true;
  std::vector<std::byte> updated{};  ///< of the block at `next`, if an optimizer has changed it
};

/// A sweep over one piece, or a part of it, block by block.
template <class Stored>
struct HostMixer::SegmentSweep {
  using T = Compute<Stored>;

  HostMixer& mixer;
  const Pass& pass;
  Part& part;
  const bool shared;  ///< with other threads, which sweep other parts
  const codec::Piece& piece = part.piece;
  const codec::CodedLayout& coded = mixer.coded();
  const Segment& segment = piece.segment;
  const algorithm::RuleTraits& traits = mixer.algorithm_->traits();
  const bool is_buffer = segment.role == Role::buffer;
  const bool plain = piece.kind == codec::Kind::identity;
  const bool sparse = piece.kind == codec::Kind::sparse;
  const bool selected = piece.kind == codec::Kind::selected;
  const PartUpdate<T>* const update =
      pass.kind == Pass::Kind::combine ? mixer.update<T>() : nullptr;
  /// Above staleness 0, a block is read before anything is written.
  const bool may_change = pass.sources != nullptr && pass.sources->may_change();
  /// A rule that only averages, over slots that kernels read and write as they are.
  const bool fused = traits.plain_average && !is_buffer && pass.kind == Pass::Kind::combine &&
                     pass.neighborhood != nullptr && pass.neighborhood->trim == nullptr &&
                     pass.next != nullptr && !guarded_reads &&
                     (plain ? std::is_same_v<Stored, T>
                            : std::is_same_v<Stored, float> && piece.kind == codec::Kind::bf16 &&
                                  !mixer.codec_.stochastic);
  const std::size_t at_once =
      fused && (may_change || update != nullptr) ? checked_elements : block_elements;
  const bool first_alone = is_buffer || (pass.kind == Pass::Kind::weights && !mixer.sums_);
  const int vectors = first_alone ? 1 : traits.messages.vectors;
  T* const current_scratch = room_of(2 + 3 * static_cast<std::size_t>(vectors));
  std::byte* const code_scratch = reinterpret_cast<std::byte*>(payload_scratch(vectors));

  SegmentSweep(HostMixer& owner, const Pass& of_pass, Part& of_piece, bool with_others)
      : mixer(owner), pass(of_pass), part(of_piece), shared(with_others) {}

  /// So many blocks of the thread's own, which stay: a thread may have a small stack.
  static T* room_of(std::size_t blocks) {
    thread_local AlignedBuffer room;
    if (room.size_bytes() < blocks * block_bytes) room = AlignedBuffer(blocks * block_bytes);
    return reinterpret_cast<T*>(room.data());
  }
  T* own_scratch(int k) const {
    return current_scratch + (1 + static_cast<std::size_t>(k)) * block_elements;
  }
  T* pull_scratch(int k) const { return own_scratch(vectors + k); }
  T* payload_scratch(int k) const { return pull_scratch(vectors + k); }

  /// Stops before a block whose sources have changed, if other threads sweep, too.
  void run() {
    if (shared && may_change && pass.sources->any_torn()) return;
    while (part.next < part.end) {
      const std::size_t count = std::min(at_once, part.end - part.next);
      if (!sweep_block(part.next, count)) break;
      part.next += count;
    }
    if (shared) mixing::stream_fence();  // of this thread's stores
  }

  bool sweep_block(std::size_t first, std::size_t count) {
    algorithm::Block<T> block = begin(first, count);
    if (fused) return average(block, first);
    if (pass.kind == Pass::Kind::measure) {
      measure(block, first);
      return true;
    }
    if (!read(first + count, [&] { prepare(block, first); })) return keep_update(block);
    if (may_change) block.info.neighbor_weight = neighbor_weight(traits, *pass.neighborhood);
    apply(block, first);
    if (pass.next != nullptr) emit(block, first);
    return true;
  }

  /// Calls `compute`, which reads the neighbors' payloads as far as `end`, until it has read them
  /// whole. If other threads sweep, calls it once: true if it has.
  template <class ComputeBlock>
  bool read(std::size_t end, const ComputeBlock& compute) {
    if (pass.sources != nullptr && shared) return pass.sources->read_once(compute);
    if (pass.sources == nullptr) {
      compute();
    } else {
      const bool in_order = !sparse && !selected && vectors == 1;
      pass.sources->read(in_order ? piece.offset_bytes + piece.code_bytes(end) : whole_payload,
                         compute);
    }
    return true;
  }

  void note(bool finite) { part.finite = part.finite && finite; }

  Stored* model(std::size_t first) const { return static_cast<Stored*>(segment.data) + first; }
  BFloat16* remainder(std::size_t first) const {
    return reinterpret_cast<BFloat16*>(mixer.remainder_.data() + segment.offset_bytes) + first;
  }
  T* kept(const AlignedBuffer& buffer, std::size_t first) const {
    return reinterpret_cast<T*>(buffer.data() + mixer.widening_ * segment.offset_bytes) + first;
  }

  bool average(const algorithm::Block<T>& block, std::size_t first) {
    if constexpr (std::is_same_v<Stored, float>) {
      if (!plain) return average_slots<BFloat16>(block, first);
    }
    if constexpr (std::is_same_v<Stored, T>) return average_slots<T>(block, first);
    return true;
  }

  /// Slots that may change are averaged into scratch, which counts if they have not. While payloads
  /// arrive, the weights stay as they are, and the next slot alone is written.
  template <class InSlot>
  bool average_slots(const algorithm::Block<T>& block, std::size_t first) {
    const InSlot* own = at<InSlot>(pass.own, 0, piece.offset_bytes) + first;
    InSlot* next = reinterpret_cast<InSlot*>(pass.next->vector(0) + piece.offset_bytes) + first;
    T* current = block.current;
    if (may_change) return average_checked(block, first, own, next);
    if (pass.sources != nullptr && pass.sources->are_arriving())
      current = std::copy_n(block.current, block.count, current_scratch) - block.count;
    return read(first + block.count, [&] {
      const auto& [values, weights] = list_slots<InSlot>(first);
      note(mixing::average(current, next, own, values, weights, block.count));
    });
  }

  template <class InSlot>
  bool average_checked(const algorithm::Block<T>& block, std::size_t first, const InSlot* own,
                       InSlot* next) {
    T* const averaged = pull_scratch(0);
    bool finite = true;
    const bool whole = read(first + block.count, [&] {
      const auto& [values, weights] = list_slots<InSlot>(first);
      finite = mixing::average_apart(averaged, block.current, own, values, weights, block.count);
    });
    if (!whole) return keep_update(block);
    note(finite);
    if (update == nullptr) std::copy_n(averaged, block.count, block.current);
    stream(next, averaged, block.count);
    return true;
  }

  /// An optimizer steps once, however often a block is read.
  bool keep_update(const algorithm::Block<T>& block) {
    const auto* bytes = reinterpret_cast<const std::byte*>(block.current);
    if (update != nullptr && *update) part.updated.assign(bytes, bytes + block.count * sizeof(T));
    return false;
  }

  /// The neighbors' slots from an element on, and their weights.
  template <class InSlot>
  const auto& list_slots(std::size_t first) const {
    thread_local std::pair<std::vector<const InSlot*>, std::vector<T>> slots;
    slots.first.clear();
    for (const Payload& payload : pass.neighborhood->payloads)
      slots.first.push_back(at<InSlot>(payload, 0, piece.offset_bytes) + first);
    slots.second.assign(pass.neighborhood->weights.begin(), pass.neighborhood->weights.end());
    return slots;
  }

  /// What the optimizer makes of a block of the weights in the worker's own slot. Null: it leaves
  /// them as they are.
  T* updated(std::size_t first, std::size_t count) {
    if (fused && !*update) return nullptr;
    if (!part.updated.empty()) {
      std::memcpy(current_scratch, part.updated.data(), part.updated.size());
      part.updated.clear();
      return current_scratch;
    }
    std::copy_n(at<T>(pass.own, 0, piece.offset_bytes) + first, count, current_scratch);
    if (*update) (*update)(piece.first + first, {current_scratch, count});
    return current_scratch;
  }

  /// A block of a message: in place, or decoded into `scratch`.
  const T* decoded(const std::byte* code, T* scratch, std::size_t count) const {
    if (plain) return load(reinterpret_cast<const Stored*>(code), scratch, count);
    codec::decode(piece.kind, code, count, scratch);
    return scratch;
  }
  const T* message(const std::byte* vector, std::size_t first, std::size_t count,
                   T* scratch) const {
    if (!sparse) return decoded(vector + piece.code_offset(first), scratch, count);
    codec::decode_sparse(coded.sparse(), vector, piece.first + first, count, scratch);
    return scratch;
  }

  /// The entries that have traveled, among `others`, or among zeros.
  const T* selected_message(const std::byte* vector, const T* others, std::size_t first,
                            std::size_t count, T* out, std::byte* room) const {
    const codec::SelectedShape& shape = coded.selected();
    const std::int64_t combination =
        codec::read_combination(read_optimistically(vector, room, sizeof(std::int64_t)));
    const auto range = shape.range(combination, piece.first + first, count);
    const std::byte* stored = read_optimistically(vector + shape.offset_bytes(range.first), room,
                                                  range.count * shape.value_bytes);
    if (shape.of_changes)
      std::fill_n(out, count, T{0});
    else
      std::copy_n(others, count, out);
    codec::decode_selected(shape, shape.code_of(segment.dtype), combination, stored,
                           piece.first + first, count, out);
    return out;
  }

  bool is_summed(int k) const { return !is_buffer && mixer.is_summed(k); }

  /// What a neighbor has published since this worker last combined of it, in this epoch.
  const T* untaken(int worker, int k, const std::byte* code, std::size_t first, std::size_t count,
                   T* out) const {
    const RunningSums::Source& source = mixer.sums_->source(worker);
    if (!source.same_epoch) {
      std::fill_n(out, count, T{0});
      return out;
    }
    double* read = source.read.at(k, piece.first + first);
    const double* taken = source.taken.at(k, piece.first + first);
    std::memcpy(read, code, sizeof(double) * count);
    for (std::size_t e = 0; e < count; ++e) out[e] = static_cast<T>(read[e] - taken[e]);
    return out;
  }

  /// Payload vector k of the j-th neighbor is not for this worker.
  bool is_for_others(std::size_t j, int k) const {
    return !is_buffer && traits.messages.by_edge &&
           weight_of(traits, *pass.neighborhood, j, k) == 0;
  }

  /// A block of payload vector k of each neighbor, straight from its memory. Valid until the next
  /// call.
  std::span<const T* const> messages(int k, const T* own, std::size_t first,
                                     std::size_t count) const {
    thread_local std::vector<std::byte> scratch;  // a neighbor: a guarded copy, a decoded copy
    thread_local std::vector<const T*> values;
    const Neighborhood& near = *pass.neighborhood;
    const std::size_t degree = near.payloads.size();
    scratch.resize(2 * block_bytes * degree);
    values.clear();
    for (std::size_t j = 0; j < degree; ++j) {
      if (is_for_others(j, k)) continue;
      std::byte* room = scratch.data() + 2 * block_bytes * j;
      T* values_room = reinterpret_cast<T*>(room + block_bytes);
      const bool by_edge = is_buffer && traits.messages.by_edge;
      const std::byte* vector = near.payloads[j].vector(by_edge ? near.edges[j] : k);
      if (selected) {
        values.push_back(selected_message(vector, own, first, count, values_room, room));
      } else if (sparse) {  // of rules that run at staleness 0, where nothing changes meanwhile
        values.push_back(message(vector, first, count, values_room));
      } else {
        const std::byte* code =
            read_optimistically(vector + piece.code_offset(first), room, piece.code_bytes(count));
        values.push_back(is_summed(k) ? untaken(near.workers[j], k, code, first, count, values_room)
                                      : decoded(code, values_room, count));
      }
    }
    return values;
  }

  /// Pulls of one block towards payload vector k of the neighbors.
  void pull_towards(int k, T* out, const T* own, std::size_t first, std::size_t count) const {
    thread_local std::vector<T> weights;
    const Neighborhood& near = *pass.neighborhood;
    const std::span<const T* const> values = messages(k, own, first, count);
    if (near.trim != nullptr)
      return mixing::trimmed_differences(out, own, values, near.trim->each_side, count,
                                         near.trim->kept);
    const bool apart = is_buffer && !near.buffer_weights.empty();
    weights.clear();
    for (std::size_t j = 0; j < near.payloads.size(); ++j) {
      if (is_for_others(j, k)) continue;
      weights.push_back(static_cast<T>(apart       ? near.buffer_weights[j]
                                       : is_buffer ? near.weights[j]
                                                   : weight_of(traits, near, j, k)));
    }
    mixing::weighted_differences(out, own, values, weights, count);
    if (!is_summed(k) || near.owed_weight == 0) return;
    for (std::size_t e = 0; e < count; ++e) out[e] -= static_cast<T>(near.owed_weight) * own[e];
  }

  /// Buffers differ from the model, as in a combination.
  void measure(const algorithm::Block<T>& block, std::size_t first) {
    const T* own =
        is_buffer ? block.current : message(pass.own.vector(0), first, block.count, own_scratch(0));
    note(mixing::all_finite(own, block.count));
    auto& squares = is_buffer ? pass.distances->buffers : pass.distances->parameters;
    const std::span<const T* const> values = messages(0, own, first, block.count);
    for (std::size_t j = 0; j < values.size(); ++j)
      squares[j] += mixing::squared_distance(values[j], own, block.count);
  }

  /// A block's weights, after the optimizer's step, and the rule's state.
  algorithm::Block<T> begin(std::size_t first, std::size_t count) {
    algorithm::Block<T> block;
    block.first = piece.first + first;
    block.count = count;
    block.info = pass.info;
    block.info.parameters = mixer.layout().parameter_count();
    if constexpr (std::is_same_v<Stored, T>) {
      if (update != nullptr) block.current = updated(first, count);
    }
    if (update == nullptr)
      block.current = const_cast<T*>(load(model(first), current_scratch, count));
    if constexpr (!std::is_same_v<Stored, T>) add_remainder(block.current, remainder(first), count);
    for (std::size_t s = 0; s < mixer.state_.size(); ++s) {
      block.state[s] = kept(mixer.state_[s], first);
    }
    for (int k = 0; k < vectors; ++k) {
      block.payload[static_cast<std::size_t>(k)] = payload_scratch(k);
    }
    return block;
  }

  /// Own messages and pulls, in scratch.
  void prepare(algorithm::Block<T>& block, std::size_t first) {
    if (republishes()) mixer.algorithm_->apply(algorithm::Sweep::publish, block);
    for (int k = 0; k < vectors; ++k) prepare_vector(block, k, first);
  }

  /// The worker's own message is what publish() makes of the same weights and state.
  bool republishes() const {
    return std::is_same_v<Stored, T> && traits.messages.republishes && plain && !is_buffer &&
           pass.kind == Pass::Kind::combine && pass.next == nullptr && pass.neighborhood != nullptr;
  }

  void prepare_vector(algorithm::Block<T>& block, int k, std::size_t first) {
    const auto i = static_cast<std::size_t>(k);
    const bool pulls = pass.neighborhood != nullptr;
    if (republishes()) {
      block.own[i] = payload_scratch(k);
    } else if (selected) {
      block.own[i] = block.current;
      if (pass.own.data != nullptr) {
        block.own[i] = selected_message(pass.own.vector(k), block.current, first, block.count,
                                        own_scratch(k), code_scratch);
      }
    } else if (pass.own.data != nullptr &&
               (pulls || traits.messages.own != algorithm::Own::unused)) {
      block.own[i] = mixer.keeps_own_ && (!pulls || is_summed(k))
                         ? kept(mixer.sent_[i], first)
                         : message(pass.own.vector(k), first, block.count, own_scratch(k));
    }
    block.message[i] = block.own[i];
    const bool keep = pass.gathered || pass.kind == Pass::Kind::gather;
    T* pull = keep ? kept(mixer.gathered_[i], first) : pull_scratch(k);
    if (pulls) {
      pull_towards(k, pull, is_buffer ? block.current : block.own[i], first, block.count);
      // In a restart, the pulls refer to the coded message of before.
      if (mixer.keeps_own_ && !pass.info.restarts) block.own[i] = kept(mixer.sent_[i], first);
    }
    block.pull[i] = pass.pull == nullptr ? pull
                                         : load(at<Stored>(*pass.pull, k, piece.code_offset(first)),
                                                pull, block.count);
  }

  void apply(algorithm::Block<T>& block, std::size_t first) {
    if (pass.kind == Pass::Kind::start && !is_buffer)
      mixer.algorithm_->apply(algorithm::Sweep::start, block);
    if (pass.kind == Pass::Kind::survey && !is_buffer) {
      note(mixing::all_finite(block.current, block.count));
      mixer.algorithm_->apply(algorithm::Sweep::survey, block);
    }
    if (pass.kind != Pass::Kind::combine) return;
    if (is_buffer && pass.pull == nullptr) {
      for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
    } else {
      mixer.algorithm_->apply(algorithm::Sweep::combine, block);
    }
    if constexpr (!std::is_same_v<Stored, T>)
      split(block.current, model(first), remainder(first), block.count);
  }

  void emit(algorithm::Block<T>& block, std::size_t first) {
    if (is_buffer || pass.kind == Pass::Kind::weights) {
      std::memcpy(payload_scratch(0), block.current, block.count * sizeof(T));
      for (int k = 1; k < vectors; ++k) std::fill_n(payload_scratch(k), block.count, T{0});
    } else {
      mixer.algorithm_->apply(algorithm::Sweep::publish, block);
    }
    for (int k = 0; k < vectors; ++k) emit_vector(k, payload_scratch(k), first, block.count);
    // A neighbor may get no other vector than its own.
    for (int k = vectors; is_buffer && traits.messages.by_edge && k < traits.messages.vectors; ++k)
      emit_vector(k, payload_scratch(0), first, block.count);
    if (traits.messages.weights_apart) {
      note(mixing::all_finite(block.current, block.count));
      const std::size_t offset = segment.offset_bytes + first * sizeof(Stored);
      stream(reinterpret_cast<Stored*>(pass.next->weights + offset), block.current, block.count);
    }
  }

  void emit_sum(int k, std::size_t first, std::size_t count) {
    double* sum = mixer.sums_->own().at(k, piece.first + first);
    for (std::size_t e = 0; pass.kind == Pass::Kind::publish && e < count; ++e) {
      sum[e] += static_cast<double>(payload_scratch(k)[e]);
    }
    mixing::stream_copy(pass.next->vector(k) + piece.code_offset(first), sum,
                        piece.code_bytes(count));
  }

  void emit_vector(int k, const T* values, std::size_t first, std::size_t count) {
    const auto i = static_cast<std::size_t>(k);
    note(mixing::all_finite(values, count));
    if (mixer.keeps_own_) std::memcpy(kept(mixer.sent_[i], first), values, count * sizeof(T));
    if (is_summed(k)) return emit_sum(k, first, count);
    if (sparse) return mixer.writers_[i].append(values, piece.first + first, count);
    if (selected) {
      const codec::SelectedShape& shape = coded.selected();
      return codec::encode_selected(shape, shape.code_of(segment.dtype),
                                    mixer.selected_by(pass.info.round), values, piece.first + first,
                                    count, pass.next->vector(k), mixer.coder_.rounding_key(k));
    }
    std::byte* to = pass.next->vector(k) + piece.code_offset(first);
    if (plain) return note(stream(reinterpret_cast<Stored*>(to), values, count));
    mixer.coder_.encode(piece, k, values, first, count, code_scratch);
    mixing::stream_copy(to, code_scratch, piece.code_bytes(count));
  }
};

}  // namespace fast::combine
