#define XXH_INLINE_ALL
#include "train/checkpoint/manifest.hpp"
#include "core/text.hpp"

#include <xxhash.h>

#include <charconv>
#include <fast/core/error.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

namespace fast::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view directory_prefix = "round-";
constexpr int most_workers = 1 << 20;
constexpr std::streamoff most_bytes = std::streamoff{64} << 20;

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::uint64_t from_hex(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16) {
    throw std::invalid_argument("a hash of 16 digits is required");
  }
  return value;
}

Json to_json(const WorkerFile& shard) {
  return {{"worker", shard.worker}, {"bytes", shard.size_bytes}, {"xxh3", hex(shard.hash)}};
}

WorkerFile shard_from(const Json& json) {
  return {json.at("worker").get<int>(), json.at("bytes").get<std::uint64_t>(),
          from_hex(json.at("xxh3").get<std::string>())};
}

std::uint64_t hash_of_text(const std::string& text) {
  return hash_of({std::as_bytes(std::span(text))});
}

void check(const Manifest& manifest) {
  const auto demand = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
  };
  demand(manifest.round >= 0, "its round is negative");
  demand(manifest.workers >= 1 && manifest.workers <= most_workers, "its number of workers");
  int last = -1;
  for (const WorkerFile& shard : manifest.shards) {
    demand(shard.worker > last && shard.worker < manifest.workers, "its list of workers");
    last = shard.worker;
  }
}

}  // namespace

std::string directory_name(std::int64_t round) {
  return fmt::format("{}{:012}", directory_prefix, round);
}

std::optional<std::int64_t> round_of(const std::filesystem::path& directory) {
  const std::string name = directory.filename().string();
  if (!name.starts_with(directory_prefix)) return std::nullopt;
  std::int64_t round = 0;
  if (!reads(std::string_view(name).substr(directory_prefix.size()), round)) return std::nullopt;
  return round;
}

std::string shard_name(int worker) { return fmt::format("worker-{}.safetensors", worker); }
std::string note_name(int worker) { return fmt::format("worker-{}.json", worker); }

std::uint64_t hash_of(const std::vector<std::span<const std::byte>>& parts) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (const auto& part : parts) XXH3_64bits_update(state.get(), part.data(), part.size());
  return XXH3_64bits_digest(state.get());
}

std::string to_note(const WorkerFile& shard) { return to_json(shard).dump() + "\n"; }

std::optional<WorkerFile> read_note(const std::filesystem::path& path) {
  std::ifstream in(path);
  const Json json = Json::parse(in, nullptr, false);
  try {
    return shard_from(json);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string to_json(const Manifest& manifest) {
  Json shards = Json::array();
  for (const WorkerFile& shard : manifest.shards) shards.push_back(to_json(shard));
  Json json = {{"format", "fast checkpoint 1"},
               {"round", manifest.round},
               {"workers", manifest.workers},
               {"shards", shards}};
  json["xxh3"] = hex(hash_of_text(json.dump()));
  return json.dump(1) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::filesystem::path& file) {
  try {
    Json json = Json::parse(text);
    const std::string hash = json.at("xxh3").get<std::string>();
    json.erase("xxh3");
    if (json.at("format") != "fast checkpoint 1") throw std::invalid_argument("its format");
    if (from_hex(hash) != hash_of_text(json.dump())) throw std::invalid_argument("its own hash");
    Manifest manifest{file.parent_path(),
                      json.at("round").get<std::int64_t>(),
                      json.at("workers").get<int>(),
                      {}};
    for (const Json& shard : json.at("shards")) manifest.shards.push_back(shard_from(shard));
    check(manifest);
    return manifest;
  } catch (const std::exception& error) {
    fail(ErrorKind::data, "{} is not a manifest of a checkpoint: {}; take another checkpoint",
         file.string(), error.what());
  }
}

std::filesystem::path Manifest::file(int worker) const { return directory / shard_name(worker); }

const WorkerFile* Manifest::shard(int worker) const {
  for (const WorkerFile& shard : shards) {
    if (shard.worker == worker) return &shard;
  }
  return nullptr;
}

Manifest read_manifest(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / manifest_name;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  require(in.good(), ErrorKind::data, "{} cannot be read; name the directory of a checkpoint",
          file.string());
  require(in.tellg() >= 0 && in.tellg() <= most_bytes, ErrorKind::data,
          "{} has {} bytes, more than a manifest has; take another checkpoint", file.string(),
          static_cast<std::int64_t>(in.tellg()));
  std::string text(static_cast<std::size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  return parse_manifest(text, file);
}

}  // namespace fast::train
