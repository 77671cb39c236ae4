// A file of an observer: bytes are appended, and the first failure ends it with one warning.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/observer.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/descriptor.hpp"

namespace fast::observe {

/// What happens to a file of that name.
enum class Existing { emptied, refused };

class OutputFile {
 public:
  /// Makes the directory and a new file. Throws Error(resource). `what` is for messages.
  OutputFile(std::string_view what, std::filesystem::path path, LogSink log,
             Existing existing = Existing::emptied)
      : what_(what), path_(std::move(path)), log_(std::move(log)) {
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    require(!error, ErrorKind::resource, "{}: the directory {} cannot be made: {}; choose another",
            what_, path_.parent_path().string(), error.message());
    const int new_or_empty = existing == Existing::refused ? O_EXCL : O_TRUNC;
    descriptor_ =
        Descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | new_or_empty, 0644));
    require(descriptor_.is_open(), ErrorKind::resource,
            "{}: {} cannot be written: {}; choose another directory", what_, path_.string(),
            std::strerror(errno));
  }

  /// Writes all of it to the system, so that it outlives this process. False, from the first
  /// failure on.
  bool append(std::string_view bytes) noexcept {
    while (descriptor_.is_open() && !bytes.empty()) {
      const ssize_t written = write(descriptor_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        give_up();
        break;
      }
      bytes.remove_prefix(static_cast<std::size_t>(written));
      size_bytes_ += static_cast<std::size_t>(written);
    }
    return descriptor_.is_open();
  }

  /// Empties the file.
  void clear() noexcept {
    if (!descriptor_.is_open()) return;
    if (ftruncate(descriptor_.get(), 0) != 0 || lseek(descriptor_.get(), 0, SEEK_SET) != 0)
      return give_up();
    size_bytes_ = 0;
  }

  std::size_t size_bytes() const { return size_bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void give_up() noexcept {
    const char* why = std::strerror(errno);
    descriptor_ = Descriptor();
    if (!log_) return;
    try {
      log_(LogLevel::warning,
           fmt::format("{}: {} cannot be written: {}; training goes on without it", what_,
                       path_.string(), why));
    } catch (const std::exception&) {
      return;  // a warning more or less
    }
  }

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
  void add_heading(std::string_view bytes) {
    heading_ += bytes;
    append(bytes);
  }

  /// Bytes that are not divided. They reach the system within 0.1 s of further calls, or 64 KiB.
  void append(std::string_view bytes) {
    if (files_[current_]->size_bytes() + waiting_.size() + bytes.size() > most_bytes_) turn();
    waiting_ += bytes;
    if (waiting_.size() >= most_waiting || Clock::now() - flushed_ >= longest_wait) flush();
  }

  void flush() {
    files_[current_]->append(waiting_);
    waiting_.clear();
    flushed_ = Clock::now();
  }

 private:
  static constexpr auto longest_wait = std::chrono::milliseconds(100);
  static constexpr std::size_t most_waiting = std::size_t{64} << 10U;

  void turn() {
    flush();
    current_ = 1 - current_;
    files_[current_]->clear();
    waiting_ = heading_;
  }

  std::array<std::unique_ptr<OutputFile>, 2> files_;
  std::size_t most_bytes_;
  std::size_t current_ = 0;
  std::string heading_, waiting_;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace fast::observe
