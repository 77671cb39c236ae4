#include "rank_logs.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fast/core/error.hpp>
#include <filesystem>
#include <system_error>
#include <utility>

namespace fastrun {
namespace {

constexpr std::size_t longest_line = std::size_t{1} << 16;  ///< bytes

std::string file_of(const std::string& folder, int rank) {
  return fmt::format("{}/rank-{}.log", folder, rank);
}

Descriptor open_to_append(const std::string& name) {
  constexpr int mode = 0644;
  return Descriptor(open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode));
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

RankLogs::RankLogs(std::string folder, int ranks, Say say)
    : folder_(std::move(folder)), say_(std::move(say)) {
  if (folder_.empty()) return;
  std::error_code why;
  std::filesystem::create_directories(folder_, why);
  if (!why && access(folder_.c_str(), W_OK | X_OK) != 0)
    why = std::error_code(errno, std::generic_category());
  fast::require(!why, fast::ErrorKind::argument,
                "fastrun: --log-dir: no files can be made in {} ({}); choose another folder",
                folder_, why.message());
  for (int rank = 0; rank < ranks; ++rank) files_.push_back({rank});
}

void RankLogs::add(int rank, char stream, std::string_view text) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= files_.size()) return;
  File& file = files_[static_cast<std::size_t>(rank)];
  std::string& begun = file.begun[stream == 'e'];
  begun += text;
  const std::size_t end = begun.find_last_of("\n\r");  // of a line, or of a bar drawn in place
  const std::size_t whole = end != begun.npos             ? end + 1
                            : begun.size() < longest_line ? 0
                                                          : begun.size();
  append(file, std::string_view(begun).substr(0, whole));
  begun.erase(0, whole);
}

void RankLogs::finish() {
  for (File& file : files_) {
    for (std::string& begun : file.begun)
      if (!begun.empty()) append(file, std::exchange(begun, {}) + '\n');
  }
}

void RankLogs::append(File& file, std::string_view text) {
  if (file.failed || text.empty()) return;
  const std::string name = file_of(folder_, file.rank);
  if (file.descriptor.get() < 0) file.descriptor = open_to_append(name);
  if (file.descriptor.get() >= 0 && write_all(file.descriptor.get(), text)) return;
  const std::string why = std::strerror(errno);
  file.failed = true;
  file.descriptor = Descriptor();
  if (!std::exchange(told_, true))
    say_(fmt::format("{} cannot be written ({}); it is left out from now on", name, why));
}

}  // namespace fastrun
