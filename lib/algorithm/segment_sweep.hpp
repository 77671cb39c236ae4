// One sweep of a rule over one segment of the model: what Mixer does per type of element.
#pragma once

#include <algorithm>
#include <cstring>
#include <fast/codec/block.hpp>
#include <fast/mixing/kernels.hpp>
#include <type_traits>

#include "algorithm/mixer.hpp"
#include "exchange/optimistic.hpp"

namespace fast::algorithm {

inline constexpr std::size_t block_elements = 2048;
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

/// Values to streaming stores of Stored elements.
template <class Stored>
void stream(Stored* to, const Compute<Stored>* from, std::size_t count) {
  if constexpr (std::is_same_v<Stored, Compute<Stored>>) {
    mixing::stream_copy(to, from, count * sizeof(Stored));
  } else {
    Stored narrowed[block_elements];
    codec::narrow(narrowed, from, count);
    mixing::stream_copy(to, narrowed, count * sizeof(Stored));
  }
}

template <class T>
const T* at(const Payload& payload, int vector, std::size_t offset_bytes) {
  return reinterpret_cast<const T*>(payload.vector(vector) + offset_bytes);
}

/// One sweep over the model. What is absent is not done.
struct Mixer::Pass {
  enum class Kind { start, survey, publish, combine, gather } kind;
  RoundInfo info;
  Payload own;
  const Neighborhood* neighborhood = nullptr;  ///< pulls are computed from these
  bool gathered = false;                       ///< pulls are in gathered_
  const Payload* pull = nullptr;               ///< pull 0 is given
  const MutablePayload* next = nullptr;
};

/// Pulls of one block, from the neighbours' memory.
template <class Stored>
void pull_of(Compute<Stored>* out, const Compute<Stored>* own, const Neighborhood& neighborhood,
             bool unit, int vector, std::size_t offset_bytes, std::size_t count) {
  using T = Compute<Stored>;
  thread_local std::vector<std::byte> scratch;  // a neighbour: a guarded copy, a widened copy
  thread_local std::vector<const T*> values;
  thread_local std::vector<T> weights;
  const std::size_t degree = neighborhood.payloads.size();
  scratch.resize(2 * block_bytes * degree);
  values.clear();
  weights.assign(neighborhood.weights.begin(), neighborhood.weights.end());
  if (unit) weights.assign(degree, T{1});
  for (std::size_t j = 0; j < degree; ++j) {
    std::byte* room = scratch.data() + 2 * block_bytes * j;
    const std::byte* from = read_optimistically(
        neighborhood.payloads[j].vector(vector) + offset_bytes, room, count * sizeof(Stored));
    values.push_back(load(reinterpret_cast<const Stored*>(from),
                          reinterpret_cast<T*>(room + block_bytes), count));
  }
  mixing::weighted_differences(out, own, values, weights, count);
}

/// A sweep over one segment, block by block.
template <class Stored>
struct Mixer::SegmentSweep {
  using T = Compute<Stored>;

  Mixer& mixer;
  const Pass& pass;
  const Segment& segment;
  std::size_t state_offset;
  std::size_t parameter_offset;
  bool is_buffer;
  int vectors;
  alignas(cache_line_bytes) T current_scratch[block_elements];
  alignas(cache_line_bytes) T own_scratch[max_payload_vectors][block_elements];
  alignas(cache_line_bytes) T pull_scratch[max_payload_vectors][block_elements];
  alignas(cache_line_bytes) T payload_scratch[max_payload_vectors][block_elements];

  SegmentSweep(Mixer& owner, const Pass& of_pass, const Segment& over, std::size_t kept_at,
               std::size_t first_parameter)
      : mixer(owner),
        pass(of_pass),
        segment(over),
        state_offset(kept_at),
        parameter_offset(first_parameter),
        is_buffer(over.role == Role::buffer),
        vectors(is_buffer ? 1 : owner.algorithm_->declaration().payload_vectors) {}

  void run() {
    if (whole_at_once()) return;
    for (std::size_t first = 0; first < segment.element_count; first += block_elements) {
      const std::size_t count = std::min(block_elements, segment.element_count - first);
      Block<T> block = prepare(first, count);
      apply(block, first);
      if (pass.next != nullptr) emit(block, first);
    }
  }

  std::size_t offset_bytes(std::size_t first) const {
    return segment.offset_bytes + first * sizeof(Stored);
  }
  Stored* model(std::size_t first) const { return static_cast<Stored*>(segment.data) + first; }
  T* kept(const AlignedBuffer& buffer, std::size_t first) const {
    return reinterpret_cast<T*>(buffer.data() + state_offset) + first;
  }

  /// Plain averages in the type of storage need no blocks.
  bool whole_at_once() {
    if constexpr (std::is_same_v<Stored, T>) {
      const bool plain = mixer.algorithm_->declaration().plain_average && !is_buffer &&
                         pass.kind == Pass::Kind::combine && pass.neighborhood != nullptr &&
                         pass.next != nullptr && !guarded_reads;
      if (!plain) return false;
      std::vector<const T*> values;
      for (const Payload& payload : pass.neighborhood->payloads) {
        values.push_back(at<T>(payload, 0, segment.offset_bytes));
      }
      const std::vector<T> weights(pass.neighborhood->weights.begin(),
                                   pass.neighborhood->weights.end());
      mixing::average(model(0), reinterpret_cast<T*>(pass.next->vector(0) + segment.offset_bytes),
                      at<T>(pass.own, 0, segment.offset_bytes), values, weights,
                      segment.element_count);
      return true;
    }
    return false;
  }

  Block<T> prepare(std::size_t first, std::size_t count) {
    Block<T> block;
    block.first = parameter_offset + first;
    block.count = count;
    block.info = pass.info;
    block.current = const_cast<T*>(load(model(first), current_scratch, count));
    for (std::size_t s = 0; s < mixer.state_.size(); ++s) {
      block.state[s] = kept(mixer.state_[s], first);
    }
    for (int k = 0; k < vectors; ++k) {
      const auto i = static_cast<std::size_t>(k);
      const std::size_t offset = offset_bytes(first);
      block.payload[i] = payload_scratch[i];
      if (pass.own.data != nullptr) {
        block.own[i] = load(at<Stored>(pass.own, k, offset), own_scratch[i], count);
      }
      const bool keep = pass.gathered || pass.kind == Pass::Kind::gather;
      T* pull = keep ? kept(mixer.gathered_[i], first) : pull_scratch[i];
      if (pass.neighborhood != nullptr) {
        const bool unit = !is_buffer && mixer.algorithm_->declaration().mixing == Mixing::unit;
        pull_of<Stored>(pull, is_buffer ? block.current : block.own[i], *pass.neighborhood, unit, k,
                        offset, count);
      }
      block.pull[i] =
          pass.pull == nullptr ? pull : load(at<Stored>(*pass.pull, k, offset), pull, count);
    }
    return block;
  }

  void apply(Block<T>& block, std::size_t first) {
    if (pass.kind == Pass::Kind::start && !is_buffer) mixer.algorithm_->apply(Sweep::start, block);
    if (pass.kind == Pass::Kind::survey && !is_buffer) {
      mixer.algorithm_->apply(Sweep::survey, block);
    }
    if (pass.kind != Pass::Kind::combine) return;
    if (is_buffer && pass.pull == nullptr) {
      for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
    } else {
      mixer.algorithm_->apply(Sweep::combine, block);
    }
    if constexpr (!std::is_same_v<Stored, T>) {
      codec::narrow(model(first), block.current, block.count);
    }
  }

  void emit(Block<T>& block, std::size_t first) {
    if (is_buffer) {
      std::memcpy(payload_scratch[0], block.current, block.count * sizeof(T));
    } else {
      mixer.algorithm_->apply(Sweep::publish, block);
    }
    for (int k = 0; k < vectors; ++k) {
      stream(reinterpret_cast<Stored*>(pass.next->vector(k) + offset_bytes(first)),
             payload_scratch[k], block.count);
    }
    if (pass.next->weights != nullptr) {
      stream(reinterpret_cast<Stored*>(pass.next->weights + offset_bytes(first)), block.current,
             block.count);
    }
  }
};

}  // namespace fast::algorithm
