#include "algorithm/mixer.hpp"

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>
#include <type_traits>

#include "exchange/optimistic.hpp"

namespace fast::algorithm {
namespace {

constexpr std::size_t block_elements = 2048;
constexpr std::size_t block_bytes = block_elements * sizeof(double);

/// The type in which elements stored as Stored are computed with.
template <class Stored>
using Compute = std::conditional_t<std::is_same_v<Stored, double>, double, float>;

/// Stored elements as values to compute with: in place, or widened into `scratch`.
template <class Stored>
const Compute<Stored>* load(const Stored* from, Compute<Stored>* scratch, std::size_t count) {
  if constexpr (std::is_same_v<Stored, Compute<Stored>>) {
    return from;
  } else {
    mixing::widen(scratch, from, count);
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
    mixing::narrow(narrowed, from, count);
    mixing::stream_copy(to, narrowed, count * sizeof(Stored));
  }
}

template <class T>
const T* at(const Payload& payload, int vector, std::size_t offset_bytes) {
  return reinterpret_cast<const T*>(payload.vector(vector) + offset_bytes);
}

}  // namespace

/// One sweep over the model. What is absent is not done.
struct Mixer::Pass {
  enum class Rule { start, publish_only, combine, gather_only } rule;
  RoundInfo info;
  Payload own;
  const Neighborhood* neighborhood = nullptr;  ///< pulls are computed from these
  bool gathered = false;                       ///< pulls are in gathered_
  const Payload* pull = nullptr;               ///< pull 0 is given
  const MutablePayload* next = nullptr;
};

Mixer::Mixer(ParameterLayout layout, std::shared_ptr<Algorithm> algorithm)
    : layout_(std::move(layout)), algorithm_(std::move(algorithm)) {
  const Declaration& declared = algorithm_->declaration();
  require(declared.state_vectors <= max_state_vectors &&
              declared.payload_vectors <= max_payload_vectors,
          ErrorKind::internal,
          "algorithm {}: {} state and {} payload vectors; at most {} and {} are supported",
          declared.name, declared.state_vectors, declared.payload_vectors, max_state_vectors,
          max_payload_vectors);
  for (int s = 0; s < declared.state_vectors; ++s) state_.emplace_back(kept_bytes());
}

std::size_t Mixer::kept_bytes() const {
  std::size_t bytes = 0;
  for (const Segment& segment : layout_.segments()) {
    bytes += round_up(segment.element_count * sizeof(double), cache_line_bytes);
  }
  return bytes;
}

void Mixer::start() { run({.rule = Pass::Rule::start, .info = {}, .own = {}}); }

void Mixer::publish(const MutablePayload& next, const RoundInfo& info) {
  run({.rule = Pass::Rule::publish_only, .info = info, .own = {}, .next = &next});
}

void Mixer::combine(const Neighborhood& neighborhood, const RoundInfo& info,
                    const MutablePayload* next) {
  run({.rule = Pass::Rule::combine,
       .info = info,
       .own = neighborhood.own,
       .neighborhood = &neighborhood,
       .next = next});
}

void Mixer::gather(const Neighborhood& neighborhood) {
  if (gathered_.empty()) {
    for (int k = 0; k < algorithm_->declaration().payload_vectors; ++k) {
      gathered_.emplace_back(kept_bytes());
    }
  }
  run({.rule = Pass::Rule::gather_only,
       .info = {},
       .own = neighborhood.own,
       .neighborhood = &neighborhood});
}

void Mixer::combine_gathered(const Payload& own, const RoundInfo& info,
                             const MutablePayload* next) {
  run({.rule = Pass::Rule::combine, .info = info, .own = own, .gathered = true, .next = next});
}

void Mixer::combine_with_pull(const Payload& own, const Payload& pull, const RoundInfo& info) {
  run({.rule = Pass::Rule::combine, .info = info, .own = own, .pull = &pull});
}

namespace {

/// Pulls of one block, from the neighbours' memory.
template <class Stored>
void pull_of(Compute<Stored>* out, const Compute<Stored>* own, const Neighborhood& neighborhood,
             int vector, std::size_t offset_bytes, std::size_t count) {
  using T = Compute<Stored>;
  thread_local std::vector<std::byte> scratch;  // a neighbour: a guarded copy, a widened copy
  thread_local std::vector<const T*> values;
  thread_local std::vector<T> weights;
  const std::size_t degree = neighborhood.payloads.size();
  scratch.resize(2 * block_bytes * degree);
  values.clear();
  weights.assign(neighborhood.weights.begin(), neighborhood.weights.end());
  for (std::size_t j = 0; j < degree; ++j) {
    std::byte* room = scratch.data() + 2 * block_bytes * j;
    const std::byte* from = read_optimistically(
        neighborhood.payloads[j].vector(vector) + offset_bytes, room, count * sizeof(Stored));
    values.push_back(load(reinterpret_cast<const Stored*>(from),
                          reinterpret_cast<T*>(room + block_bytes), count));
  }
  mixing::weighted_differences(out, own, values, weights, count);
}

}  // namespace

/// A sweep over one segment, block by block.
template <class Stored>
struct Mixer::Sweep {
  using T = Compute<Stored>;

  Mixer& mixer;
  const Pass& pass;
  const Segment& segment;
  std::size_t state_offset;
  bool is_buffer;
  int vectors;
  alignas(cache_line_bytes) T current_scratch[block_elements];
  alignas(cache_line_bytes) T own_scratch[max_payload_vectors][block_elements];
  alignas(cache_line_bytes) T pull_scratch[max_payload_vectors][block_elements];
  alignas(cache_line_bytes) T payload_scratch[max_payload_vectors][block_elements];

  Sweep(Mixer& owner, const Pass& of_pass, const Segment& over, std::size_t kept_at)
      : mixer(owner),
        pass(of_pass),
        segment(over),
        state_offset(kept_at),
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
                         pass.rule == Pass::Rule::combine && pass.neighborhood != nullptr &&
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
      const bool keep = pass.gathered || pass.rule == Pass::Rule::gather_only;
      T* pull = keep ? kept(mixer.gathered_[i], first) : pull_scratch[i];
      if (pass.neighborhood != nullptr) {
        pull_of<Stored>(pull, is_buffer ? block.current : block.own[i], *pass.neighborhood, k,
                        offset, count);
      }
      block.pull[i] =
          pass.pull == nullptr ? pull : load(at<Stored>(*pass.pull, k, offset), pull, count);
    }
    return block;
  }

  void apply(Block<T>& block, std::size_t first) {
    if (pass.rule == Pass::Rule::start && !is_buffer) mixer.algorithm_->start(block);
    if (pass.rule != Pass::Rule::combine) return;
    if (is_buffer && pass.pull == nullptr) {
      for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
    } else {
      mixer.algorithm_->combine(block);
    }
    if constexpr (!std::is_same_v<Stored, T>) {
      mixing::narrow(model(first), block.current, block.count);
    }
  }

  void emit(Block<T>& block, std::size_t first) {
    if (is_buffer) {
      std::memcpy(payload_scratch[0], block.current, block.count * sizeof(T));
    } else {
      mixer.algorithm_->publish(block);
    }
    for (int k = 0; k < vectors; ++k) {
      stream(reinterpret_cast<Stored*>(pass.next->vector(k) + offset_bytes(first)),
             payload_scratch[k], block.count);
    }
  }
};

void Mixer::run(const Pass& pass) {
  std::size_t state_offset = 0;
  const auto sweep = [&]<class Stored>(const Segment& segment, Stored) {
    Sweep<Stored>(*this, pass, segment, state_offset).run();
  };
  for (const Segment& segment : layout_.segments()) {
    switch (segment.dtype) {
      case DType::f32:
        sweep(segment, float{});
        break;
      case DType::f64:
        sweep(segment, double{});
        break;
      case DType::bf16:
        sweep(segment, BFloat16{});
        break;
      case DType::f16:
        sweep(segment, Float16{});
        break;
      default:
        fail(ErrorKind::internal, "Mixer: element type {}", name(segment.dtype));
    }
    state_offset += round_up(segment.element_count * sizeof(double), cache_line_bytes);
  }
}

}  // namespace fast::algorithm
