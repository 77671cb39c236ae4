#include "train/checkpoint/run_directories.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fast/core/error.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using train::DirectoryLock;

namespace {

constexpr Seconds short_patience{0.1};

/// Another process with a mark on the directory, which is there once this is made.
class OtherProcess {
 public:
  explicit OtherProcess(const std::filesystem::path& directory) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    process_ = fork();
    if (process_ == 0) {
      const DirectoryLock lock(directory);
      [[maybe_unused]] const ssize_t ignored = write(ends[1], "x", 1);
      pause();
      _exit(0);
    }
    char byte = 0;
    CHECK(read(ends[0], &byte, 1) == 1);
    for (const int end : ends) close(end);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess() { end(); }
  /// As the kernel or a user kills it.
  void end() {
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
};

}  // namespace

TEST_CASE("a directory with the mark of another process is refused until that process is killed") {
  const testing::TemporaryDirectory directory;
  OtherProcess other(directory.path());
  const DirectoryLock own(directory.path());
  CHECK_THROWS_WITH(own.require_alone(short_patience),
                    ContainsSubstring("another run writes to " + directory.path().string()));
  other.end();
  CHECK_NOTHROW(own.require_alone(short_patience));
}

TEST_CASE("workers of one run share a directory, each until it ends") {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path made = directory / "made";
  const DirectoryLock first(made);
  CHECK_NOTHROW(first.require_alone(short_patience));
  {
    const DirectoryLock second(made), third(made);
    CHECK_THROWS_AS(first.require_alone(short_patience), Error);
  }
  CHECK_NOTHROW(first.require_alone(short_patience));
}

TEST_CASE("of runs that begin at the same moment in one directory, at most one goes on") {
  constexpr int processes = 8, times = 40;
  const testing::TemporaryDirectory directory;
  for (int time = 0; time < times; ++time) {
    int start[2], alone[2];
    REQUIRE(pipe(start) == 0);
    REQUIRE(pipe(alone) == 0);
    std::vector<pid_t> begun;
    for (int p = 0; p < processes; ++p) {
      begun.push_back(fork());
      if (begun.back() != 0) continue;
      close(start[1]);
      const DirectoryLock lock(directory.path());
      char byte = 0;
      [[maybe_unused]] ssize_t ignored = read(start[0], &byte, 1);  // until the test closes it
      try {
        lock.require_alone(short_patience);
        ignored = write(alone[1], "x", 1);
        pause();  // it trains
      } catch (const Error&) {
      }
      _exit(0);
    }
    for (const int end : {start[0], start[1]}) close(end);
    // Those that are refused have ended. Their marks may have refused all.
    int left = processes;
    const Deadline deadline(Seconds(20));
    while (left > 1 && !deadline.expired()) {
      if (waitpid(-1, nullptr, WNOHANG) > 0) --left;
    }
    if (left == 1 && waitpid(-1, nullptr, WNOHANG) > 0) --left;
    CHECK(left <= 1);
    close(alone[1]);
    for (const pid_t process : begun) kill(process, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0) continue;
    std::string told(processes, ' ');
    CHECK(read(alone[0], told.data(), told.size()) <= 1);
    close(alone[0]);
  }
}

TEST_CASE("a worker that asks whether it is alone keeps its mark") {
  const testing::TemporaryDirectory directory;
  const DirectoryLock first(directory.path());
  {
    const DirectoryLock other(directory.path());
    CHECK_THROWS_AS(first.require_alone(Seconds(0)), Error);
  }
  const DirectoryLock later(directory.path());
  CHECK_THROWS_AS(later.require_alone(Seconds(0)), Error);  // the first one's mark
}

namespace {

/// What another first worker of this host holds while it looks at the directory: a socket without a
/// file, which is named by the directory's device and node.
Descriptor gate_of(const std::filesystem::path& directory) {
  struct stat found {};
  REQUIRE(stat(directory.c_str(), &found) == 0);
  const std::string text = fmt::format("fast directory {:x} {:x}", found.st_dev, found.st_ino);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  text.copy(name.sun_path + 1, sizeof name.sun_path - 1);
  Descriptor held(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  REQUIRE(bind(held.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  return held;
}

}  // namespace

TEST_CASE("while another first worker looks at a directory, nobody is alone there") {
  const testing::TemporaryDirectory directory;
  const DirectoryLock own(directory.path());
  {
    const Descriptor other = gate_of(directory.path());
    CHECK_THROWS_AS(own.require_alone(short_patience), Error);
  }
  own.require_alone(short_patience);
}

TEST_CASE("a directory in another one that a run writes to is free") {
  const testing::TemporaryDirectory directory;
  const DirectoryLock out(directory.path()), checkpoints(directory / "checkpoints");
  CHECK_NOTHROW(out.require_alone(short_patience));
  CHECK_NOTHROW(checkpoints.require_alone(short_patience));
}

TEST_CASE("a directory that cannot be made has no mark") {
  const DirectoryLock none("/proc/none");
  CHECK_NOTHROW(none.require_alone(short_patience));
}
