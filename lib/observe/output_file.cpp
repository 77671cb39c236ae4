#include "observe/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fast/core/error.hpp>
#include <utility>

namespace fast::observe {

OutputFile::OutputFile(std::string_view what, std::filesystem::path path, LogSink log,
                       Existing existing)
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

bool OutputFile::append(std::string_view bytes) noexcept {
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

void OutputFile::clear() noexcept {
  if (!descriptor_.is_open()) return;
  if (ftruncate(descriptor_.get(), 0) != 0 || lseek(descriptor_.get(), 0, SEEK_SET) != 0)
    return give_up();
  size_bytes_ = 0;
}

void OutputFile::give_up() noexcept {
  const char* why = std::strerror(errno);
  descriptor_ = Descriptor();
  if (!log_) return;
  try {
    log_(LogLevel::warning, fmt::format("{}: {} cannot be written: {}; training goes on without it",
                                        what_, path_.string(), why));
  } catch (const std::exception&) {
    return;  // a warning more or less
  }
}

namespace {
constexpr auto longest_wait = std::chrono::milliseconds(100);
constexpr std::size_t most_waiting = std::size_t{64} << 10U;
}  // namespace

void Segments::add_heading(std::string_view bytes) {
  heading_ += bytes;
  append(bytes);
}

void Segments::append(std::string_view bytes) {
  if (files_[current_]->size_bytes() + waiting_.size() + bytes.size() > most_bytes_) turn();
  waiting_ += bytes;
  if (waiting_.size() >= most_waiting || Clock::now() - flushed_ >= longest_wait) flush();
}

void Segments::flush() {
  files_[current_]->append(waiting_);
  waiting_.clear();
  flushed_ = Clock::now();
}

void Segments::turn() {
  flush();
  current_ = 1 - current_;
  files_[current_]->clear();
  waiting_ = heading_;
}

}  // namespace fast::observe
