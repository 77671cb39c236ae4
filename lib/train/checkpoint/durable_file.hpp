// Files that are whole or absent, even if the program or the machine ends while they are written.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace fast::train {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Part of the names of temporary files, which stand beside the final file.
inline constexpr std::string_view temporary_suffix = ".tmp-";

/// Writes the parts one after the other to a temporary file and renames it. Throws Error(resource)
/// with the system's reason when the file cannot be written; nothing is left then. No process ever
/// sees a part of the file. Waits until the data is on disk: the file outlives a crash of the
/// machine.
void write_durably(const std::filesystem::path& path, const std::vector<Bytes>& parts);
/// Writes a directory's names to disk, so that they outlive a crash of the machine.
void sync_directory(const std::filesystem::path& directory);

}  // namespace fast::train
