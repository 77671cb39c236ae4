// Files that are whole or absent, even if the program or the machine ends while they are written.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"

namespace fast {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Part of the names of temporary files, which stand beside the final file.
inline constexpr std::string_view temporary_suffix = ".tmp-";

/// A file that is written part by part. No process ever sees a part of it: the parts go to a
/// temporary file, which finish() renames. Without finish() nothing is left, and a file that was
/// there before stays as it was. A file that is replaced passes on its permissions. A symbolic link
/// keeps its place: the file that it leads to is replaced. Devices and pipes are written directly.
///
/// Functions throw Error(resource) with the file's name and the system's reason.
class WholeFile {
 public:
  explicit WholeFile(std::filesystem::path path);
  ~WholeFile();

  void write(Bytes part);
  void write(std::string_view part) { write(bytes_of(part)); }
  void finish();
  /// The same, and waits until the data is on disk: the file outlives a crash of the machine.
  void finish_durably();

 private:
  void write_out(Bytes part);
  void empty_buffer();
  [[noreturn]] void fail() const;

  std::filesystem::path path_, temporary_;
  Descriptor descriptor_;
  std::string buffer_;
};

void write_whole(const std::filesystem::path& path, std::string_view text);
void write_durably(const std::filesystem::path& path, const std::vector<Bytes>& parts);

/// Throws what a WholeFile would throw at once, and makes no file: for programs that ask before
/// they work for long.
void require_writable(const std::filesystem::path& path);

/// Writes a directory's names to disk, so that they outlive a crash of the machine.
void sync_directory(const std::filesystem::path& directory);

}  // namespace fast
