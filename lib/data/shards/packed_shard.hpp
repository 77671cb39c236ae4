// One shard of FAST's own form: its parts in the file, and its description.
#pragma once

#include <fast/data/shards.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/shards/mapped_file.hpp"

namespace fast::data {

/// Where the parts of a shard begin, and how long it is before its description.
struct PackedOffsets {
  std::size_t sample_bytes = 0, target_bytes = 0;  ///< of one sample
  std::size_t samples = 0, targets = 0, sums = 0, description = 0;
};
/// Throws Error(data), which names `path`, for numbers that no file has.
PackedOffsets offsets_of(const PackedInfo& info, const std::string& path);

std::string packed_head();
/// The description with what follows it.
std::string packed_tail(const PackedInfo& info);
/// Of a whole shard. Throws as read_packed_info() does.
PackedInfo parse_packed(std::span<const std::byte> shard, const std::string& path);

std::uint64_t sum_of(std::span<const std::byte> values);

/// A shard in memory.
class PackedShard {
 public:
  explicit PackedShard(const std::filesystem::path& path);

  const PackedInfo& info() const { return info_; }
  const std::string& path() const { return file_.path(); }
  std::size_t sample_bytes() const { return offsets_.sample_bytes; }
  /// Throws Error(data) when the sum of a sample's values differs.
  std::span<const std::byte> sample(std::size_t index) const;
  /// Labels or floats of all samples.
  std::span<const std::byte> targets() const;

 private:
  MappedFile file_;
  PackedInfo info_;
  PackedOffsets offsets_;
};

}  // namespace fast::data
