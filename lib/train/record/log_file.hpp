// What a worker has to say, line by line, with the time and its rank: OUT/logs/RANK.log.
#pragma once

#include <fast/core/observer.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace fast::train {

/// Thread-safe. Lines are appended, each at once: "2026-11-22 18:03:12.345 rank 3 warning: text".
class LogFile {
 public:
  /// Keeps messages of at least that level. The first one that cannot be written (disk full) is
  /// told to `complain`, and nothing is written from then on.
  LogFile(LogLevel least, LogSink complain) : least_(least), complain_(std::move(complain)) {}
  /// Until then nothing is written. Throws Error(resource) when the file cannot be opened.
  void open(const std::filesystem::path& directory, int rank);
  void write(LogLevel level, std::string_view text) noexcept;

 private:
  LogLevel least_;
  LogSink complain_;
  std::mutex mutex_;
  std::filesystem::path path_;
  std::ofstream out_;
  int rank_ = -1;
};

/// Writes a line for each checkpoint.
class LogObserver final : public Observer {
 public:
  explicit LogObserver(std::shared_ptr<LogFile> file) : file_(std::move(file)) {}
  void on_milestone(const MilestoneEvent& event) noexcept override;

 private:
  std::shared_ptr<LogFile> file_;
};

}  // namespace fast::train
