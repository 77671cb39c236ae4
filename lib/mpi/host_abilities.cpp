#include "mpi/host_abilities.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/descriptor.hpp"

namespace fast::mpi {
namespace {

constexpr const char* shared_memory = "/dev/shm";
constexpr std::string_view prefixes[] = {"mpich_shar_tmp", "ucx_shm_posix_"};

/// A copy of this process, without the handlers that fork() runs and without SIGCHLD at its end.
pid_t plain_fork() { return static_cast<pid_t>(syscall(SYS_clone, 0, 0, 0, 0, 0)); }

/// The copy waits until this process has looked at it, or has ended.
[[noreturn]] void wait_and_end(const int (&pipe)[2]) {
  close(pipe[1]);
  char nothing = 0;
  [[maybe_unused]] const ssize_t ignored = read(pipe[0], &nothing, 1);
  _exit(0);
}

bool can_read(pid_t process) {
  static const int value = 1;  // the copy has it at the same address
  int copy = 0;
  const iovec here{&copy, sizeof copy};
  const iovec there{const_cast<int*>(&value), sizeof value};
  return process_vm_readv(process, &here, 1, &there, 1, 0) == sizeof value;
}

/// No file of a process that lives gets this: the kernel refuses a lease while anybody else has the
/// file open or mapped, in any namespace.
bool is_unused(const char* path) {
  const Descriptor file(open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file.is_open() && fcntl(file.get(), F_SETLEASE, F_WRLCK) == 0;
}

bool is_own_file(const char* path) {
  struct stat found {};
  return lstat(path, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid();
}

}  // namespace

bool can_read_other_processes() {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return true;
  const pid_t child = plain_fork();
  if (child == 0) wait_and_end(pipe);
  close(pipe[0]);
  const bool can = child < 0 || can_read(child);
  close(pipe[1]);
  if (child > 0) waitpid(child, nullptr, __WALL);
  return can;
}

bool is_in_other_user_namespace(int connection) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  const bool is_known =
      getsockname(connection, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (!is_known || address.ss_family != AF_UNIX) return false;
  ucred peer{};
  length = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  struct stat own {
  }, other{};
  const std::string theirs = "/proc/" + std::to_string(peer.pid) + "/ns/user";
  if (stat("/proc/self/ns/user", &own) != 0) return false;
  return stat(theirs.c_str(), &other) != 0 || own.st_ino != other.st_ino;
}

void remove_stale_shared_memory() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(shared_memory), closedir);
  if (!folder) return;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name(entry->d_name);
    const bool is_known = std::ranges::any_of(
        prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
    const std::string path = std::string(shared_memory) + "/" + entry->d_name;
    if (is_known && is_own_file(path.c_str()) && is_unused(path.c_str())) unlink(path.c_str());
  }
}

bool has_rdma() {
  std::error_code none;
  return !std::filesystem::is_empty("/sys/class/infiniband", none) && !none;
}

}  // namespace fast::mpi
