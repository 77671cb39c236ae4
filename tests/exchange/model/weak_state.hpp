// The state of a program under the weak memory model: what is in memory, and how far each thread
// is.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "exchange/model/weak_memory.hpp"

namespace fast::testing::weak {

inline constexpr std::size_t most_locations = 24;

/// For each location, a place in its modification order.
struct View : std::array<std::uint8_t, most_locations> {
  View() { fill(0); }
  void join(const View& other) {
    for (std::size_t x = 0; x < most_locations; ++x) (*this)[x] = std::max((*this)[x], other[x]);
  }
};

struct Message {
  Value value = 0;
  View view;
  bool follows = false;  ///< stored by an update: nothing comes between it and the one before
};

struct Begun {
  std::uint8_t location = 0, oldest = 0;
  bool complete = false;
  Value value = 0;
};

struct ThreadState {
  View now, acquired,
      released;  ///< the last two: after an acquire fence; at the last release fence
  std::size_t stage = 0;
  Values kept, results;  ///< results: of the operations of this stage
  std::vector<Begun> begun;
};

struct State {
  std::vector<std::vector<Message>> memory;
  std::vector<ThreadState> threads;
  View total;  ///< of sequentially consistent fences
};

inline bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
inline bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

/// Of all that a state is, in 128 bits.
class Digest {
 public:
  void add(std::uint64_t word) {
    low_ = (low_ ^ word) * 0x9e3779b97f4a7c15U;
    low_ ^= low_ >> 32;
    high_ = (high_ + word) * 0xd6e8feb86659fd93U;
    high_ ^= high_ >> 29;
  }
  void add(const View& view) {
    for (std::size_t x = 0; x < most_locations; x += 8) {
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < 8; ++i) word = word << 8 | view[x + i];
      add(word);
    }
  }
  void add(const Values& values) {
    add(values.size());
    for (const Value value : values) add(static_cast<std::uint64_t>(value));
  }
  std::pair<std::uint64_t, std::uint64_t> get() const { return {low_, high_}; }

 private:
  std::uint64_t low_ = 1, high_ = 2;
};

inline std::pair<std::uint64_t, std::uint64_t> digest(const State& state) {
  Digest of;
  for (const auto& messages : state.memory) {
    of.add(messages.size());
    for (const Message& message : messages) {
      of.add(static_cast<std::uint64_t>(message.value));
      of.add(message.view);
      of.add(message.follows);
    }
  }
  for (const ThreadState& thread : state.threads) {
    for (const View* view : {&thread.now, &thread.acquired, &thread.released}) of.add(*view);
    of.add(thread.stage);
    of.add(thread.kept);
    of.add(thread.results);
    for (const Begun& load : thread.begun) {
      of.add(std::uint64_t{load.location} << 16 | std::uint64_t{load.oldest} << 8 | load.complete);
      of.add(static_cast<std::uint64_t>(load.value));
    }
  }
  of.add(state.total);
  return of.get();
}

struct PairHash {
  std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& pair) const {
    return pair.first ^ pair.second;
  }
};

}  // namespace fast::testing::weak
