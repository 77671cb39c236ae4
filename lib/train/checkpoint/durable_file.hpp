// Files that are whole or not there, whatever ends the program or the machine meanwhile.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace fast::train {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// What durable files are called until they are whole: beside their later place.
inline constexpr std::string_view temporary_suffix = ".tmp-";

/// Writes the parts one after the other to a temporary file and renames. Throws Error(resource),
/// with the system's reason, when that cannot be done; nothing is left then. Whole for everybody
/// who looks; what the machine's crash leaves of it is not said.
void write_whole(const std::filesystem::path& path, const std::vector<Bytes>& parts);
/// The same, and they have reached the disk before it is renamed: outlives the machine's crash.
void write_durably(const std::filesystem::path& path, const std::vector<Bytes>& parts);
/// The names in it outlive the machine's crash from now on, where the file system can do that.
void sync_directory(const std::filesystem::path& directory);

}  // namespace fast::train
