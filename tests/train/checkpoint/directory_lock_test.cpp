#include "train/checkpoint/directory_lock.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fast/core/error.hpp>

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

TEST_CASE("a directory that cannot be made has no mark") {
  const DirectoryLock none("/proc/none");
  CHECK_NOTHROW(none.require_alone(short_patience));
}
