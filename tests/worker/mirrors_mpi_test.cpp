// Mirrors of workers of other hosts: they take memory when their worker is read, and not before. On
// one host there are none.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;

namespace {

constexpr std::size_t weights_count = std::size_t{1} << 18;
constexpr std::size_t model_bytes = weights_count * sizeof(float);
constexpr std::size_t mirror_bytes = 3 * (model_bytes + 4096);  // long slots have a spare page
std::atomic<bool> system_refuses{false};

/// The system refuses to provide memory for messages of this size, as at the end of its memory. A
/// limit of the process would end MPI itself.
class NoMemoryForMirrors {
 public:
  explicit NoMemoryForMirrors(bool refuses) { system_refuses = refuses; }
  NoMemoryForMirrors(const NoMemoryForMirrors&) = delete;
  NoMemoryForMirrors& operator=(const NoMemoryForMirrors&) = delete;
  ~NoMemoryForMirrors() { system_refuses = false; }
};

WorkerOptions quick() {
  WorkerOptions options;
  options.deadline = Seconds(60);
  options.initial = Initial::as_is;
  return options;
}

/// A worker whose weights are its rank, and that makes them no others.
struct Constant {
  std::vector<float> weights =
      std::vector<float>(weights_count, static_cast<float>(testing::world().rank()));
  Worker worker;

  explicit Constant(const TopologyRule& rule, const WorkerOptions& options = quick())
      : worker(testing::world(), rule, {view_of("weights", std::span(weights))}, options) {}
  void rounds(int count) {
    for (int round = 0; round < count; ++round) worker.step([] {});
  }
  bool all_are(double value) const {
    return std::ranges::all_of(weights, [&](float w) { return std::abs(w - value) < 1e-5; });
  }
};

/// Mirrors of which only the header may be accessed. The system counts nothing for them.
int mirrors_without_memory() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, access) != 3) continue;
    if (std::string_view(access) == "---p" && end - begin == mirror_bytes) ++count;
  }
  return count;
}

class Hosts {
 public:
  Hosts() : hosts_(Group(testing::world()).hosts()) {}
  bool are_several() const {
    return std::ranges::count(hosts_, hosts_.front()) < std::ssize(hosts_);
  }
  int others() const {
    int count = 0;
    for (int worker = 0; worker < std::ssize(hosts_); ++worker) count += is_elsewhere(worker);
    return count;
  }
  /// Workers of other hosts that this one reads on a ring.
  int sources() const {
    const int size = static_cast<int>(hosts_.size()), rank = testing::world().rank();
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    return is_elsewhere(next) + (before != next ? is_elsewhere(before) : 0);
  }

 private:
  int is_elsewhere(int worker) const {
    const auto host = [&](int rank) { return hosts_[static_cast<std::size_t>(rank)]; };
    return host(worker) == host(testing::world().rank()) ? 0 : 1;
  }
  std::vector<int> hosts_;
};

std::vector<std::string> gather(const std::string& own) {
  return testing::world().all_gather(own, Deadline(Seconds(60)), "a test");
}

double mean_rank() { return (testing::world().size() - 1) / 2.0; }

bool is_last() { return testing::world().rank() == testing::world().size() - 1; }

/// All ranks end, and one of them says that there is no memory.
void check_that_all_end(const std::function<void()>& work) {
  std::string outcome = "no error";
  try {
    work();
  } catch (const Error& caught) {
    outcome = caught.to_be_reported_by(testing::world().rank()) ? caught.what() : "";
  }
  std::vector<std::string> reports = gather(outcome);
  std::erase(reports, "");
  REQUIRE(reports.size() == 1);
  INFO(reports.front());
  CHECK(reports.front().find("ulimit -d") != std::string::npos);
}

}  // namespace

/// In place of the system's.
extern "C" int mprotect(void* memory, std::size_t bytes, int access) noexcept {
  if (system_refuses && bytes >= model_bytes && (access & PROT_WRITE) != 0) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_mprotect, memory, bytes, access));
}

TEST_CASE("a worker of another host takes memory when it is read") {
  const Hosts hosts;
  Constant c(stencil::ring());
  c.rounds(3);
  CHECK(mirrors_without_memory() == hosts.others() - hosts.sources());
  // The weights of workers that were not read in any round.
  std::vector<float> mean(weights_count);
  c.worker.mean_model(std::as_writable_bytes(std::span(mean)));
  CHECK(c.worker.consensus_distance() >= 0);
  CHECK(mirrors_without_memory() == hosts.others() - hosts.sources());
  gather("counted");
  c.worker.set_schedule(stencil::complete());
  c.rounds(1);
  CHECK(mirrors_without_memory() == 0);
  CHECK(c.all_are(mean_rank()));
  c.worker.await_finish();
}

TEST_CASE("a rank without memory for its neighbors ends the start on all, with one report") {
  if (!Hosts().are_several()) return;
  check_that_all_end([] {
    const NoMemoryForMirrors none(is_last());
    Constant(stencil::ring()).rounds(1);
  });
  Constant again(stencil::ring());
  again.rounds(1);
  again.worker.await_finish();
}

TEST_CASE("a rank without memory for a later neighbor ends all, with one report") {
  if (!Hosts().are_several() || testing::world().size() < 4) return;
  for (const RemotePathChoice path : {RemotePathChoice::two_sided, RemotePathChoice::pull}) {
    for (const std::int64_t staleness : {0, 2}) {
      WorkerOptions options = quick();
      options.remote_path = path;
      options.staleness = staleness;
      check_that_all_end([&] {
        Constant c(stencil::ring(), options);
        c.rounds(1);
        const NoMemoryForMirrors none(is_last());
        c.worker.set_schedule(stencil::complete());
        c.rounds(20);
        c.worker.await_finish();
      });
    }
  }
}
