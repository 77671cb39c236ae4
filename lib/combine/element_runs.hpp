// The elements of a model as devices have them: runs in a table, which one launch does, and what
// looks at them have met.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fast::combine {

/// Elements that a block of threads takes at a time. A multiple of the widest pack.
constexpr std::size_t chunk_elements = 4096;

/// Elements that are contiguous in the model's memory and in messages.
struct ElementRun {
  void* current;              ///< null: the weights exist in messages only
  std::uint64_t first;        ///< as in algorithm::Block
  std::uint64_t count;        ///< of elements
  std::uint64_t slot_bytes;   ///< its place in a vector of a message
  std::uint64_t kept_bytes;   ///< its place in memory that is laid out as the model
  std::uint32_t first_chunk;  ///< chunks of the runs before
  std::uint32_t is_buffer;
};

/// The first `count` runs of a table in the memory of the device. Null: `single` is the only run.
struct RunTable {
  const ElementRun* runs;
  std::uint32_t count;
  std::uint32_t chunks;  ///< of these runs
  ElementRun single;
};

inline std::uint32_t chunks_of(std::uint64_t elements) {
  return static_cast<std::uint32_t>((elements + chunk_elements - 1) / chunk_elements);
}
/// A table of one run, which a launch has in its arguments.
inline RunTable table_of(const ElementRun& run) { return {nullptr, 1, chunks_of(run.count), run}; }

/// What looks at the weights have met, in memory of the device. Looks have numbers, from 1.
struct Looks {
  std::uint32_t last;   ///< the latest that met a value which is not finite
  std::uint32_t count;  ///< of those that did
};

}  // namespace fast::combine
