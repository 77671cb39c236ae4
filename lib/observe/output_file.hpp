// A file of an observer: bytes are appended, and the first failure ends it with one warning.
#pragma once

#include <fast/core/log.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace fast::observe {

/// What happens to a file of that name.
enum class Existing { emptied, refused };

class OutputFile {
 public:
  /// Makes the directory and a new file. Throws Error(resource). `what` is for messages.
  OutputFile(std::string_view what, std::filesystem::path path, LogSink log,
             Existing existing = Existing::emptied);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Writes all of it to the system, so that it outlives this process. False, from the first
  /// failure on.
  bool append(std::string_view bytes) noexcept;
  /// Empties the file.
  void clear() noexcept;
  std::size_t size_bytes() const { return size_bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void give_up() noexcept;

  std::string what_;
  std::filesystem::path path_;
  LogSink log_;
  int descriptor_ = -1;
  std::size_t size_bytes_ = 0;
};

}  // namespace fast::observe
