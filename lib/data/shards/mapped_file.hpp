// A file whose pages are in this process's memory while they are used.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

namespace fast::data {

/// Read-only. Pages that nobody reads take no memory. A file that becomes shorter while it is
/// mapped ends the process (SIGBUS) where a lost page is read.
class MappedFile {
 public:
  /// Throws Error(data) when the file cannot be read, Error(resource) when it cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace fast::data
