#include "train/checkpoint/durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fast/core/error.hpp>
#include <random>

namespace fast::train {
namespace {

constexpr int most_names_tried = 100;

/// A new name each time, even in containers that share a directory and process numbers.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static std::atomic<unsigned> files{0};
  std::random_device device;
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, HOST_NAME_MAX);
  std::filesystem::path name = path;
  name += fmt::format("{}{}-{}-{}-{:08x}", temporary_suffix, host, getpid(), files++, device());
  return name;
}

/// A new file beside `path`; removed at the end unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& path) {
    for (int k = 0; k < most_names_tried && descriptor_ < 0; ++k) {
      path_ = temporary_name(path);
      descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (descriptor_ < 0 && errno != EEXIST) return;
    }
  }
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
  int descriptor_ = -1;
  bool renamed_ = false;
};

}  // namespace

void sync_directory(const std::filesystem::path& directory) {
  const int descriptor =
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

void write_durably(const std::filesystem::path& path, const std::vector<Bytes>& parts) {
  TemporaryFile file(path);
  bool written = file.opened();
  for (const Bytes& part : parts) written = written && file.write(part);
  written = written && file.reach_disk() && file.rename_to(path);
  const int reason = errno;
  require(written, ErrorKind::resource,
          "{} cannot be written ({}); check the directory and its free space", path.string(),
          std::strerror(reason));
  sync_directory(path.parent_path());
}

}  // namespace fast::train
