// The JSON files of checkpoints.
#pragma once

#include <optional>

#include "train/checkpoint/checkpoint.hpp"

namespace fast::train {

inline constexpr std::string_view manifest_name = "manifest.json";

std::string directory_name(std::int64_t round);
/// The round of a directory with such a name; empty for other names.
std::optional<std::int64_t> round_of(const std::filesystem::path& directory);
std::string shard_name(int worker);
std::string note_name(int worker);

/// Newest first, complete or not.
std::vector<std::pair<std::int64_t, std::filesystem::path>> checkpoints_in(
    const std::filesystem::path& directory);
/// Whether one of these has a manifest.
bool has_checkpoint(const std::filesystem::path& directory);
/// Removes the manifest first, so that no incomplete checkpoint is ever read. Files of other names
/// stay, and so does a directory with such files.
void remove_checkpoint(const std::filesystem::path& directory);
/// Removes the checkpoints of later rounds.
void remove_checkpoints_after(const std::filesystem::path& directory, std::int64_t round);

std::uint64_t hash_of(const std::vector<std::span<const std::byte>>& parts);

/// The text of the file beside a worker's file, which says that the latter is whole.
std::string to_note(const WorkerFile& shard);
/// Empty when the file is missing or cannot be read.
std::optional<WorkerFile> read_note(const std::filesystem::path& path);

std::string to_json(const Manifest& manifest);
/// Throws Error(data), naming `file` and what is wrong.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& file);

}  // namespace fast::train
