#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/data/packed_shards.hpp>
#include <memory>
#include <utility>

#include "data/channel_sums.hpp"
#include "data/shards/packed_shard.hpp"
#include "data/shards/shard_positions.hpp"

namespace fast::data {
namespace {

/// All shards of a set, in their order.
class PackedSource final : public SampleSource {
 public:
  explicit PackedSource(std::vector<PackedShard> shards) : shards_(std::move(shards)) {
    for (const PackedShard& shard : shards_) positions_.add(shard.info().samples);
  }
  bool is_bytes() const override { return shards_.front().info().is_bytes; }
  std::vector<std::size_t> shards() const override {
    std::vector<std::size_t> counts;
    for (const PackedShard& shard : shards_) counts.push_back(shard.info().samples);
    return counts;
  }
  void read(std::size_t sample, std::span<std::byte> into) const override {
    const ShardPosition position = positions_.of(sample);
    const std::span<const std::byte> values = shards_[position.shard].sample(position.sample);
    std::memcpy(into.data(), values.data(), values.size());
  }

 private:
  std::vector<PackedShard> shards_;
  ShardPositions positions_;
};

void check_one_set(const std::vector<PackedShard>& shards) {
  const PackedInfo& first = shards.front().info();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const PackedInfo& info = shards[i].info();
    const bool fits = info.set == first.set && info.shards == first.shards &&
                      info.sample_shape == first.sample_shape &&
                      info.target_shape == first.target_shape && info.is_bytes == first.is_bytes &&
                      info.has_labels == first.has_labels && info.classes == first.classes;
    require(fits, ErrorKind::data, "packed: {} and {} are of different sets; give one set",
            printable(shards.front().path()), printable(shards[i].path()));
    require(info.index == i, ErrorKind::data,
            "packed: {}: shard {} of {} is {}; give each shard of the set once",
            printable(shards[i].path()), i, info.shards,
            info.index > i ? "missing" : "twice there");
  }
  require(shards.size() == first.shards, ErrorKind::data,
          "packed: {}: the last of {} shards is missing; give all shards of the set",
          printable(shards.back().path()), first.shards);
}

std::vector<PackedShard> open_shards(const std::vector<std::filesystem::path>& files) {
  require(!files.empty(), ErrorKind::argument, "packed: no files; give the shards of a set");
  std::vector<PackedShard> shards;
  for (const auto& file : files) shards.emplace_back(file);
  std::vector<std::size_t> order(shards.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return shards[a].info().index < shards[b].info().index;
  });
  std::vector<PackedShard> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(shards[i]));
  return sorted;
}

template <class T>
std::vector<T> learned_of(const std::vector<PackedShard>& shards) {
  std::vector<T> all;
  for (const PackedShard& shard : shards) {
    const std::span<const std::byte> bytes = shard.targets();
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

ChannelSums sums_in(const PackedInfo& info) {
  ChannelSums sums(0);
  sums.origins = info.origins;
  sums.sums = info.sums;
  sums.squares = info.squares;
  sums.values = static_cast<double>(info.samples);
  for (std::size_t i = 1; i < info.sample_shape.size(); ++i)
    sums.values *= static_cast<double>(info.sample_shape[i]);
  return sums;
}

}  // namespace

PackedInfo read_packed_info(const std::filesystem::path& file) { return PackedShard(file).info(); }

Dataset open_packed(const std::vector<std::filesystem::path>& files) {
  std::vector<PackedShard> shards = open_shards(files);
  check_one_set(shards);
  const PackedInfo info = shards.front().info();
  Targets targets{{}, info.target_shape, info.classes};
  if (info.has_labels)
    targets.values = learned_of<std::int32_t>(shards);
  else
    targets.values = learned_of<float>(shards);
  return {info.name, info.sample_shape, std::make_shared<PackedSource>(std::move(shards)),
          std::move(targets)};
}

Normalization packed_moments(const std::vector<std::filesystem::path>& files) {
  const std::vector<PackedShard> shards = open_shards(files);
  check_one_set(shards);
  ChannelSums total(0);
  for (const PackedShard& shard : shards) {
    const ChannelSums sums = sums_in(shard.info());
    if (total.values == 0)
      total = sums;
    else
      total.add(sums);
  }
  return total.normalization();
}

std::vector<std::size_t> damaged_in(const std::filesystem::path& file) {
  const PackedShard shard(file);
  std::vector<std::size_t> damaged;
  for (std::size_t i = 0; i < shard.info().samples; ++i) {
    try {
      shard.sample(i);
    } catch (const Error&) {
      damaged.push_back(i);
    }
  }
  return damaged;
}

}  // namespace fast::data
