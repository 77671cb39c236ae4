#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/data/shards.hpp>
#include <memory>
#include <utility>

#include "core/message.hpp"
#include "core/whole_file.hpp"
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

namespace {

/// Writes one shard, sample by sample.
class PackedWriter {
 public:
  PackedWriter(std::filesystem::path path, PackedInfo info)
      : path_(std::move(path)),
        info_(std::move(info)),
        moments_(info_.sample_shape.empty() ? 1
                                            : static_cast<std::size_t>(info_.sample_shape.front())),
        file_(path_) {
    put(packed_head());
  }
  PackedWriter(const PackedWriter&) = delete;
  PackedWriter& operator=(const PackedWriter&) = delete;

  void add(std::span<const std::byte> values, std::span<const std::byte> learned) {
    put({reinterpret_cast<const char*>(values.data()), values.size()});
    targets_.append(reinterpret_cast<const char*>(learned.data()), learned.size());
    const std::uint64_t sum = sum_of(values);
    sums_.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    ++info_.samples;
    if (info_.is_bytes)
      add_moments<std::uint8_t>(values);
    else
      add_moments<float>(values);
  }

  void finish() {
    info_.origins = moments_.origins;
    info_.sums = moments_.sums;
    info_.squares = moments_.squares;
    const PackedOffsets offsets = offsets_of(info_, path_.string());
    fill_to(offsets.targets);
    put(targets_);
    fill_to(offsets.sums);
    put(sums_);
    put(packed_tail(info_));
    file_.finish();
  }

 private:
  template <class T>
  void add_moments(std::span<const std::byte> values) {
    const std::size_t plane = values.size() / sizeof(T) / moments_.sums.size();
    const T* sample = reinterpret_cast<const T*>(values.data());
    if (moments_.values == 0) moments_.begin_at(sample, plane);
    moments_.add(sample, plane);
  }
  void put(std::string_view bytes) {
    file_.write(bytes);
    written_ += bytes.size();
  }
  void fill_to(std::size_t offset) { put(std::string(offset - written_, '\0')); }

  std::filesystem::path path_;
  PackedInfo info_;
  ChannelSums moments_;
  WholeFile file_;
  std::string targets_, sums_;
  std::size_t written_ = 0;
};

PackedInfo form_of(const Dataset& samples, std::size_t shards) {
  PackedInfo info;
  info.name = std::filesystem::path(samples.name()).filename().string();
  info.sample_shape = samples.sample_shape();
  info.target_shape = samples.target_shape();
  info.is_bytes = samples.is_bytes();
  info.has_labels = samples.targets().empty();
  info.classes = samples.classes();
  info.shards = shards;
  const std::string form =
      fmt::format("{} {} {} {}", info.name, samples.size(), shards, samples.sample_size());
  info.set = sum_of(std::as_bytes(std::span(form)));
  return info;
}

/// What the model learns of one sample.
std::span<const std::byte> learned_by(const Dataset& samples, std::size_t index) {
  const std::size_t each = samples.target_size(), at = index * each;
  if (samples.targets().empty()) return std::as_bytes(samples.labels().subspan(at, each));
  return std::as_bytes(samples.targets().subspan(at, each));
}

}  // namespace

std::vector<std::filesystem::path> write_packed(
    const Dataset& samples, const std::filesystem::path& directory, const std::string& split,
    std::size_t shard_bytes, const std::function<void(const std::string& why)>& left_out,
    PackedNames names) {
  require(samples.size() > 0 && shard_bytes > 0, ErrorKind::argument,
          "packed: {} samples in shards of {} bytes; at least one of each is required",
          samples.size(), shard_bytes);
  std::vector<std::byte> values(samples.sample_size() * (samples.is_bytes() ? 1 : sizeof(float)));
  const std::size_t each = std::max<std::size_t>(1, shard_bytes / values.size());
  const std::size_t shards = (samples.size() + each - 1) / each;
  PackedInfo info = form_of(samples, shards);
  info.names = std::move(names);
  std::vector<std::filesystem::path> files;
  for (; info.index < shards; ++info.index) {
    files.push_back(directory /
                    fmt::format("{}-{:05}-of-{:05}{}", split, info.index, shards, packed_ending));
    PackedWriter writer(files.back(), info);
    const std::size_t end = std::min(samples.size(), (info.index + 1) * each);
    for (std::size_t i = info.index * each; i < end; ++i) {
      try {
        samples.copy(i, values);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::data) throw;
        left_out(error.what());
        continue;
      }
      writer.add(values, learned_by(samples, i));
    }
    writer.finish();
  }
  return files;
}

}  // namespace fast::data
