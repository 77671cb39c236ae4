// Samples in files that need not fit in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace fast::data {

/// Samples that are read when they are needed. They lie in shards, one after the other: sample
/// numbers go on from shard to shard. Several threads may read at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  /// True: a value is a byte, which a batch has divided by 255. False: a value is a float.
  virtual bool is_bytes() const = 0;
  /// How many samples each shard has.
  virtual std::vector<std::size_t> shards() const = 0;
  /// Writes the values of one sample, row-major, as bytes or native floats. `into` has the size of
  /// a sample. Throws Error(data), naming file and sample, when the sample is damaged.
  virtual void read(std::size_t sample, std::span<std::byte> into) const = 0;

  /// Samples of the files that are not among these, because they are not complete.
  virtual std::size_t left_out() const { return 0; }
  /// Why the first of them is not; empty: none was left out.
  virtual std::string why_left_out() const { return {}; }
};

}  // namespace fast::data
