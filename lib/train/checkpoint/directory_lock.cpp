#include "train/checkpoint/directory_lock.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fast/core/error.hpp>
#include <iterator>
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
  while (!try_lock(descriptor_, LOCK_EX)) {
    require(!deadline.expired(), ErrorKind::argument,
            "Trainer: another run writes to {} now; end it first, or choose another directory",
            directory_.string());
    std::this_thread::sleep_for(between_tries);
  }
  try_lock(descriptor_, LOCK_SH);
}

}  // namespace fast::train
