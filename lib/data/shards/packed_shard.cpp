#include "data/shards/packed_shard.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/message.hpp"

namespace fast::data {
namespace {

constexpr std::string_view head_magic = "FASTPACK", tail_magic = "FASTEND1";
constexpr std::size_t head_bytes = cache_line_bytes, tail_bytes = 24;
constexpr int packed_version = 2;  ///< in version 1, sums are from 0
constexpr std::uint64_t most_samples = std::uint64_t{1} << 40;

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

/// Without overflow; else Error(data).
class Product {
 public:
  explicit Product(const std::string& path) : path_(path) {}
  std::size_t of(std::size_t a, std::size_t b) const {
    std::size_t result = 0;
    if (__builtin_mul_overflow(a, b, &result) || result > (std::size_t{1} << 60)) refuse();
    return result;
  }
  std::size_t of(std::size_t start, const std::vector<std::int64_t>& shape) const {
    for (const std::int64_t side : shape) {
      if (side <= 0) refuse();
      start = of(start, static_cast<std::size_t>(side));
    }
    return start;
  }

 private:
  [[noreturn]] void refuse() const {
    fail(ErrorKind::data,
         "packed: {}: its description has numbers that no file has; copy the file again",
         printable(path_));
  }
  const std::string& path_;
};

nlohmann::json json_of(const PackedInfo& info) {
  nlohmann::json json{{"version", packed_version},
                      {"name", printable(info.name)},
                      {"sample_shape", info.sample_shape},
                      {"values", info.is_bytes ? "u8" : "f32"},
                      {"targets", info.has_labels ? "labels" : "f32"},
                      {"target_shape", info.target_shape},
                      {"classes", info.classes},
                      {"samples", info.samples},
                      {"shard", info.index},
                      {"shards", info.shards},
                      {"set", info.set},
                      {"origins", info.origins},
                      {"sums", info.sums},
                      {"squares", info.squares}};
  if (!info.names.features.empty()) json["features"] = info.names.features;
  if (!info.names.class_names.empty()) json["class_names"] = info.names.class_names;
  if (!info.names.target.empty()) json["target"] = info.names.target;
  return json;
}

PackedInfo info_of(const nlohmann::json& json) {
  PackedInfo info;
  info.name = json.at("name").get<std::string>();
  info.sample_shape = json.at("sample_shape").get<std::vector<std::int64_t>>();
  info.is_bytes = json.at("values").get<std::string>() == "u8";
  info.has_labels = json.at("targets").get<std::string>() == "labels";
  info.target_shape = json.at("target_shape").get<std::vector<std::int64_t>>();
  info.classes = json.at("classes").get<int>();
  info.samples = json.at("samples").get<std::uint64_t>();
  info.index = json.at("shard").get<std::uint64_t>();
  info.shards = json.at("shards").get<std::uint64_t>();
  info.set = json.at("set").get<std::uint64_t>();
  info.sums = json.at("sums").get<std::vector<double>>();
  info.squares = json.at("squares").get<std::vector<double>>();
  info.origins = json.value("origins", std::vector<double>(info.sums.size()));
  info.names = {json.value("features", std::vector<std::string>()),
                json.value("class_names", std::vector<std::string>()),
                json.value("target", std::string())};
  return info;
}

std::uint64_t word_at(std::string_view text, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, text.data() + at, sizeof value);
  return value;
}

/// The description's text, whose sum is right.
std::string_view description_of(std::string_view shard, const std::string& path) {
  require(shard.starts_with(head_magic), ErrorKind::data,
          "packed: {}: it does not begin with {}; give a file that fast-data convert wrote",
          printable(path), head_magic);
  require(shard.size() >= head_bytes + tail_bytes && shard.ends_with(tail_magic), ErrorKind::data,
          "packed: {}: truncated: it has {} bytes and no end; copy the file again", printable(path),
          shard.size());
  const std::uint64_t length = word_at(shard, shard.size() - tail_bytes);
  const bool fits = length <= shard.size() - head_bytes - tail_bytes;
  const std::string_view text =
      fits ? shard.substr(shard.size() - tail_bytes - length, length) : std::string_view();
  require(fits && hash_of(text) == word_at(shard, shard.size() - 16), ErrorKind::data,
          "packed: {}: its description is damaged; copy the file again", printable(path));
  return text;
}

PackedInfo read_description(std::string_view text, const std::string& path) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const int version = json.at("version").get<int>();
    require(
        version >= 1 && version <= packed_version, ErrorKind::data,
        "packed: {}: version {} of the form, this program reads 1 to {}; convert the data again",
        printable(path), version, packed_version);
    return info_of(json);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "packed: {}: its description cannot be read: {}", printable(path),
         printable(error.what()));
  }
}

}  // namespace

std::uint64_t sum_of(std::span<const std::byte> values) {
  return XXH3_64bits(values.data(), values.size());
}

PackedOffsets offsets_of(const PackedInfo& info, const std::string& path) {
  const Product product(path);
  PackedOffsets offsets;
  const std::size_t samples = info.samples;
  require(samples < most_samples, ErrorKind::data, "packed: {}: {} samples; no file has so many",
          printable(path), samples);
  offsets.sample_bytes =
      product.of(info.is_bytes ? std::size_t{1} : sizeof(float), info.sample_shape);
  offsets.target_bytes = product.of(sizeof(float), info.target_shape);
  offsets.samples = head_bytes;
  offsets.targets =
      round_up(offsets.samples + product.of(samples, offsets.sample_bytes), cache_line_bytes);
  offsets.sums =
      round_up(offsets.targets + product.of(samples, offsets.target_bytes), cache_line_bytes);
  offsets.description = offsets.sums + product.of(samples, sizeof(std::uint64_t));
  return offsets;
}

std::string packed_head() {
  std::string head(head_magic);
  head.resize(head_bytes, '\0');
  return head;
}

std::string packed_tail(const PackedInfo& info) {
  std::string text = json_of(info).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint64_t words[] = {text.size(), hash_of(text)};
  text.append(reinterpret_cast<const char*>(words), sizeof words);
  return text.append(tail_magic);
}

PackedInfo parse_packed(std::span<const std::byte> shard, const std::string& path) {
  const std::string_view bytes(reinterpret_cast<const char*>(shard.data()), shard.size());
  const std::string_view text = description_of(bytes, path);
  PackedInfo info = read_description(text, path);
  const PackedOffsets offsets = offsets_of(info, path);
  const std::size_t channels =
      info.sample_shape.empty() ? 1 : static_cast<std::size_t>(info.sample_shape.front());
  require(offsets.description + text.size() + tail_bytes == shard.size() &&
              info.sums.size() == channels && info.squares.size() == channels &&
              info.origins.size() == channels && info.index < info.shards && info.classes >= 0 &&
              (info.names.class_names.empty() ||
               std::cmp_equal(info.names.class_names.size(), info.classes)),
          ErrorKind::data,
          "packed: {}: {} bytes do not fit its description ({} samples of {} bytes); copy the file "
          "again",
          printable(path), shard.size(), info.samples, offsets.sample_bytes);
  return info;
}

PackedShard::PackedShard(const std::filesystem::path& path)
    : file_(path),
      info_(parse_packed(file_.bytes(), file_.path())),
      offsets_(offsets_of(info_, file_.path())) {}

std::span<const std::byte> PackedShard::sample(std::size_t index) const {
  const std::span<const std::byte> values = file_.bytes().subspan(
      offsets_.samples + index * offsets_.sample_bytes, offsets_.sample_bytes);
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, file_.bytes().data() + offsets_.sums + index * sizeof wanted, sizeof wanted);
  require(sum_of(values) == wanted, ErrorKind::data,
          "packed: {}: sample {} is damaged (its sum differs); copy the file again",
          printable(path()), index);
  return values;
}

std::span<const std::byte> PackedShard::targets() const {
  return file_.bytes().subspan(offsets_.targets, info_.samples * offsets_.target_bytes);
}

}  // namespace fast::data
