// A file of an observer: bytes are appended, and the first failure ends it with one warning.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/observer.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/descriptor.hpp"

namespace fast::observe {

/// What happens to a file of that name.
enum class Existing { emptied, refused };

class OutputFile {
 public:
  /// Makes the directory and a new file. Throws Error(resource). `what` is for messages.
  OutputFile(std::string_view what, std::filesystem::path path, LogSink log,
             Existing existing = Existing::emptied);

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
  Descriptor descriptor_;
  std::size_t size_bytes_ = 0;
};

/// Two files that are written in turn, so that the newest bytes of an endless stream are kept.
class Segments {
 public:
  /// `size_bytes`: of both together.
  Segments(std::unique_ptr<OutputFile> first, std::unique_ptr<OutputFile> second,
           std::size_t size_bytes)
      : files_{std::move(first), std::move(second)}, most_bytes_(size_bytes / 2) {}
  ~Segments() { flush(); }

  /// Bytes that both files begin with, from now on.
  void add_heading(std::string_view bytes);
  /// Bytes that are not divided. They reach the system within 0.1 s of further calls, or 64 KiB.
  void append(std::string_view bytes);
  void flush();

 private:
  void turn();

  std::array<std::unique_ptr<OutputFile>, 2> files_;
  std::size_t most_bytes_;
  std::size_t current_ = 0;
  std::string heading_, waiting_;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace fast::observe
