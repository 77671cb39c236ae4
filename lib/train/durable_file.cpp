#include "train/durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fast/core/error.hpp>

namespace fast::train {
namespace {

/// Closed, and removed unless told to keep it.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path)
      : path_(std::move(path)),
        descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    if (!renamed_) unlink(path_.c_str());
  }

  bool opened() const { return descriptor_ >= 0; }

  bool write(Bytes bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }
  bool reach_disk() const { return fsync(descriptor_) == 0; }
  bool rename_to(const std::filesystem::path& path) {
    renamed_ = rename(path_.c_str(), path.c_str()) == 0;
    return renamed_;
  }

 private:
  std::filesystem::path path_;
  int descriptor_;
  bool renamed_ = false;
};

/// So that the new name outlives a crash of the machine. Not every file system can.
void sync_directory(const std::filesystem::path& directory) {
  const int descriptor =
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

void write(const std::filesystem::path& path, const std::vector<Bytes>& parts, bool durably) {
  static std::atomic<unsigned> files{0};
  std::filesystem::path temporary = path;
  temporary += fmt::format("{}{}-{}", temporary_suffix, getpid(), files++);
  TemporaryFile file(temporary);
  bool written = file.opened();
  for (const Bytes& part : parts) written = written && file.write(part);
  written = written && (!durably || file.reach_disk()) && file.rename_to(path);
  const int reason = errno;
  require(written, ErrorKind::resource,
          "{} cannot be written ({}); check the directory and its free space", path.string(),
          std::strerror(reason));
}

}  // namespace

void write_whole(const std::filesystem::path& path, const std::vector<Bytes>& parts) {
  write(path, parts, false);
}

void write_durably(const std::filesystem::path& path, const std::vector<Bytes>& parts) {
  write(path, parts, true);
  sync_directory(path.parent_path());
}

}  // namespace fast::train
