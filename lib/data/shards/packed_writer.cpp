#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/message.hpp>
#include <fast/data/packed_shards.hpp>
#include <utility>

#include "core/whole_file.hpp"
#include "data/channel_sums.hpp"
#include "data/shards/packed_shard.hpp"

namespace fast::data {
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
    std::size_t shard_bytes, const std::function<void(const std::string& why)>& left_out) {
  require(samples.size() > 0 && shard_bytes > 0, ErrorKind::argument,
          "packed: {} samples in shards of {} bytes; at least one of each is required",
          samples.size(), shard_bytes);
  std::vector<std::byte> values(samples.sample_size() * (samples.is_bytes() ? 1 : sizeof(float)));
  const std::size_t each = std::max<std::size_t>(1, shard_bytes / values.size());
  const std::size_t shards = (samples.size() + each - 1) / each;
  PackedInfo info = form_of(samples, shards);
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
