// A file whose pages are in this process's memory while they are used.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fast/core/error.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "core/message.hpp"

namespace fast::data {

/// Read-only. Pages that nobody reads take no memory. A file that becomes shorter while it is
/// mapped ends the process (SIGBUS) where a lost page is read.
class MappedFile {
 public:
  /// Throws Error(data) when the file cannot be read, Error(resource) when it cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path) : path_(path.string()) {
    const std::string problem = why_unreadable_file(path);
    require(problem.empty(), ErrorKind::data, "data: {}: {}; give a file that this user can read",
            printable(path_), problem);
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat found {};
    void* begin = nullptr;
    const bool is_open = file >= 0 && fstat(file, &found) == 0;
    const auto size = static_cast<std::size_t>(is_open ? found.st_size : 0);
    if (size > 0) begin = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    const int reason = errno;
    if (file >= 0) close(file);
    require(is_open && begin != MAP_FAILED, ErrorKind::resource,
            "data: {}: cannot be mapped into memory: {}", printable(path_), std::strerror(reason));
    if (size > 0) bytes_ = {static_cast<const std::byte*>(begin), size};
  }

  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;

  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace fast::data
