#include "fastrun/connections.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.hpp"

using fast::Clock;
using fastrun::Connections;
using fastrun::host_at;

namespace {

/// A child of this process that is not waited for before the end.
class Remains {
 public:
  Remains(const char* name, int status) : process_(fork()) {
    if (process_ == 0) {
      prctl(PR_SET_NAME, name);
      _exit(status);
    }
    siginfo_t ignored{};
    waitid(P_PID, static_cast<id_t>(process_), &ignored, WEXITED | WNOWAIT);
  }
  Remains(const Remains&) = delete;
  Remains& operator=(const Remains&) = delete;
  ~Remains() { waitpid(process_, nullptr, 0); }

 private:
  pid_t process_;
};

}  // namespace

TEST_CASE("a connection that has failed is told after a second, with its host and status") {
  const Remains well("ssh", 0), failed("ssh", 255);
  Connections connections("node1,node2");
  const auto start = Clock::now();
  CHECK_FALSE(connections.failure(getpid(), start));
  CHECK_FALSE(connections.failure(getpid(), start + std::chrono::milliseconds(500)));
  CHECK(connections.failure(getpid(), start + std::chrono::seconds(1)) ==
        "ssh to node2 ended with status 255");
}

TEST_CASE("a child that its parent waits for is no failed connection") {
  Connections connections("node1");
  const auto start = Clock::now();
  {
    const Remains failed("ssh", 1);
    CHECK_FALSE(connections.failure(getpid(), start));
  }
  CHECK_FALSE(connections.failure(getpid(), start + std::chrono::seconds(1)));
  const Remains another("ssh", 1);
  CHECK_FALSE(connections.failure(getpid(), start + std::chrono::seconds(2)));
  CHECK_FALSE(connections.failure(-1, start + std::chrono::seconds(3)));
}

TEST_CASE("connections are in the order of the hosts, with one for equal hosts in a row") {
  const std::string hosts = "node1:2,node2,node2,node1";
  CHECK(host_at(0, hosts) == "node1");
  CHECK(host_at(1, hosts) == "node2");
  CHECK(host_at(2, hosts) == "node1");
  CHECK(host_at(3, hosts) == "a host");
  CHECK(host_at(0, "") == "a host");
}
