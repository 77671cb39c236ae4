#include "train/record/log_file.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fast/core/error.hpp>

#include "core/message.hpp"
#include "train/checkpoint/run_directories.hpp"

namespace fast::train {
namespace {

/// "2026-11-22 18:03:12.345", in local time.
std::string time_text() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const auto ms = duration_cast<milliseconds>(now - system_clock::from_time_t(seconds)).count();
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return fmt::format("{}.{:03}", text.data(), ms);
}

}  // namespace

void LogFile::open(const std::filesystem::path& directory, int rank) {
  const std::lock_guard lock(mutex_);
  path_ = directory / logs_directory / log_name(rank);
  rank_ = rank;
  std::error_code problem;
  std::filesystem::create_directories(path_.parent_path(), problem);
  require(!problem, ErrorKind::resource, "log: the directory {} cannot be made: {}; choose another",
          path_.parent_path().string(), problem.message());
  errno = 0;
  out_.open(path_, std::ios::app);
  require(out_.is_open(), ErrorKind::resource,
          "log: {} cannot be written: {}; choose another directory", path_.string(),
          std::strerror(errno));
}

void LogFile::write(LogLevel level, std::string_view text) noexcept {
  if (level < least_) return;
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!out_.is_open()) return;
      out_ << fmt::format("{} rank {} {}: {}\n", time_text(), rank_, name_of(level),
                          printable(text))
           << std::flush;
      if (out_.good()) return;
      out_.close();
    }
    if (!complain_) return;
    complain_(LogLevel::warning,
              fmt::format("worker {}: {} cannot be written; check the disk's free space; training "
                          "goes on without a log",
                          rank_, path_.string()));
  } catch (const std::exception&) {
    return;  // a line more or less
  }
}

void LogObserver::on_milestone(const MilestoneEvent& event) noexcept {
  if (event.kind != MilestoneEvent::Kind::saved) return;
  const double took_s = Seconds(event.ended - event.began).count();
  file_->write(LogLevel::info, fmt::format("checkpoint of {}: the state was copied in {:.3f} s",
                                           event.text, took_s));
}

}  // namespace fast::train
