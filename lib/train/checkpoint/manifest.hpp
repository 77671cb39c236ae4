// The JSON files of checkpoints.
#pragma once

#include <fast/train/checkpoint.hpp>

namespace fast::train {

inline constexpr std::string_view manifest_name = "manifest.json";

std::string directory_name(std::int64_t round);
/// Empty unless the directory is called so.
std::optional<std::int64_t> round_of(const std::filesystem::path& directory);
std::string shard_name(int worker);
std::string note_name(int worker);

/// Newest first, whole or not.
std::vector<std::pair<std::int64_t, std::filesystem::path>> checkpoints_in(
    const std::filesystem::path& directory);
/// Its manifest first, so that what is left of it is not taken for a checkpoint. Files of other
/// names stay, and the directory with them.
void remove_checkpoint(const std::filesystem::path& directory);
/// Those of rounds later than that one.
void remove_checkpoints_after(const std::filesystem::path& directory, std::int64_t round);

std::uint64_t hash_of(const std::vector<std::span<const std::byte>>& parts);

/// What a worker notes beside its file when it is whole.
std::string to_note(const Shard& shard);
/// Empty when there is none, or none that can be read.
std::optional<Shard> read_note(const std::filesystem::path& path);

std::string to_json(const Manifest& manifest);
/// Throws Error(data), naming `file` and what is wrong.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& file);

}  // namespace fast::train
