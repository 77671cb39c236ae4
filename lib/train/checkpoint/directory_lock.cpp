#include "train/checkpoint/directory_lock.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fast/core/error.hpp>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

namespace fast::train {
namespace {

constexpr std::chrono::milliseconds between_tries{50};

/// On a file system of this host alone.
bool is_local(int descriptor) {
  constexpr unsigned zfs = 0x2fc12fc1;
  constexpr unsigned local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC, zfs,
                                F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC};
  struct statfs found {};
  return fstatfs(descriptor, &found) == 0 &&
         std::find(std::begin(local), std::end(local), static_cast<unsigned>(found.f_type)) !=
             std::end(local);
}

int open_directory(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 || is_local(descriptor)) return descriptor;
  close(descriptor);
  return -1;
}

/// True also where there are no locks.
bool try_lock(int descriptor, int how) {
  return flock(descriptor, how | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/// As long as this exists, no other first worker of this host looks whether it is alone in the
/// directory. It is the name of a socket, which the system takes back when the process ends.
/// Another lock of the directory would be an exchange of marks itself. Where there is no such
/// socket, there is no gate.
class Gate {
 public:
  explicit Gate(int directory) : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    struct stat found {};
    if (socket_ < 0 || fstat(directory, &found) != 0) return;
    const std::string text = fmt::format("fast directory {:x} {:x}", found.st_dev, found.st_ino);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    text.copy(name.sun_path + 1, sizeof name.sun_path - 1);  // from 1 on: no file
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    const bool is_bound = bind(socket_, reinterpret_cast<sockaddr*>(&name), length) == 0;
    is_ours_ = is_bound || errno != EADDRINUSE;
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    if (socket_ >= 0) close(socket_);
  }
  bool is_ours() const { return is_ours_; }

 private:
  int socket_;
  bool is_ours_ = true;
};

/// Leaves a mark in any case. The system exchanges a mark for another one in two steps: between
/// them there is none, and others may lock. So all that exchange marks do it one after the other.
bool is_alone_in(int descriptor) {
  const Gate gate(descriptor);
  if (!gate.is_ours()) return false;
  const bool alone = try_lock(descriptor, LOCK_EX);
  return try_lock(descriptor, LOCK_SH) && alone;
}

}  // namespace

DirectoryLock::DirectoryLock(std::filesystem::path directory)
    : directory_(std::move(directory)), descriptor_(open_directory(directory_)) {
  if (descriptor_ >= 0) try_lock(descriptor_, LOCK_SH);
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

void DirectoryLock::require_alone(Seconds patience) const {
  if (descriptor_ < 0) return;
  const Deadline deadline(patience);
  while (!is_alone_in(descriptor_)) {
    require(!deadline.expired(), ErrorKind::argument,
            "Trainer: another run writes to {} now; end it first, or choose another directory",
            directory_.string());
    std::this_thread::sleep_for(between_tries);
  }
}

}  // namespace fast::train
