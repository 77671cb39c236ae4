// Workers that exchange shards, on ranks of one host or of several.
#include <fmt/format.h>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "support/catch.hpp"
#include "support/host_accelerator.hpp"
#include "support/mpi_main.hpp"
#include "topology/sharded_oracle.hpp"
#include "worker/quick.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

double initial(int rank, std::size_t element) {
  return std::sin(1.0 + rank * 7.3 + static_cast<double>(element) * 0.37);
}

struct Model {
  std::vector<double> x;
  Worker worker;
  Model(const Group& group, const TopologyRule& rule, std::size_t size, WorkerOptions options)
      : x(start(group.rank(), size)), worker(group, rule, {view(x, options)}, options) {}
  Model(const Group& group, const TopologyRule& rule, std::size_t size, RemotePathChoice path)
      : Model(group, rule, size, options(path)) {}

  static TensorView view(std::vector<double>& x, const WorkerOptions& options) {
    TensorView view = view_of("x", std::span(x));
    if (options.accelerator) view.device = options.accelerator->device();
    return view;
  }

  static std::vector<double> start(int rank, std::size_t size) {
    std::vector<double> x(size);
    for (std::size_t e = 0; e < size; ++e) x[e] = initial(rank, e);
    return x;
  }
  static WorkerOptions options(RemotePathChoice path) {
    WorkerOptions options = quick();
    options.remote_path = path;
    return options;
  }
  void idle(int rounds) {
    for (int t = 0; t < rounds; ++t) worker.step([] {}, {.learning_rate = 0.1});
  }
};

struct Hosts {
  int count, per_host;
};

/// Those of the run; with one alone, its ranks count as hosts of this many.
Hosts hosts_of(const Group& group, int per_host) {
  const std::vector<int> hosts = group.hosts();
  if (several_hosts(group))
    per_host = static_cast<int>(std::count(hosts.begin(), hosts.end(), hosts.front()));
  return {group.size() / per_host, per_host};
}

/// That this host has sent to others.
double sent_bytes() {
  std::ifstream file("/proc/net/dev");
  std::string line;
  double all = 0;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find("lo:") < colon) continue;
    std::istringstream fields(line.substr(colon + 1));
    double field = 0;
    for (int k = 0; k < 9; ++k) fields >> field;
    all += field;
  }
  return all;
}

/// Each element has the mean after a cycle.
void check_cycle(const Group& group, const TopologyRule& rule, const Hosts& hosts, std::size_t size,
                 const WorkerOptions& options) {
  INFO(hosts.count << " hosts of " << hosts.per_host << ", " << size << " elements");
  Model model(group, rule, size, options);
  model.idle(sharded_cycle(hosts.count, hosts.per_host));
  model.worker.await_finish();
  double worst = 0;
  for (std::size_t e = 0; e < size; ++e) {
    double mean = 0;
    for (int j = 0; j < group.size(); ++j) mean += initial(j, e) / group.size();
    worst = std::max(worst, std::abs(model.x[e] - mean));
  }
  CHECK(worst < 1e-12);
}

TopologyRule rule_on(const Group& group, int per_host) {
  return several_hosts(group) ? topology_on_hosts("sharded_one_peer", group.hosts())
                              : schedule::sharded_one_peer(per_host);
}

}  // namespace

TEST_CASE("after a cycle all elements have the mean, by each path and with models of any size") {
  const Group group(world());
  for (int per_host = 1; per_host <= group.size(); ++per_host) {
    if (group.size() % per_host != 0 || (per_host > 1 && several_hosts(group))) continue;
    const Hosts hosts = hosts_of(group, per_host);
    for (const auto path : {RemotePathChoice::pull, RemotePathChoice::two_sided})
      for (const std::size_t size : {7, 1000, 140'003, 700'001})
        check_cycle(group, rule_on(group, per_host), hosts, size, Model::options(path));
  }
}

TEST_CASE("devices exchange shards staged, in place on a host and by MPI between hosts") {
  const Group group(world());
  if (group.size() % 2 != 0) return;
  const Hosts hosts = hosts_of(group, 2);
  for (const Sharing& sharing :
       {Sharing{}, Sharing{.on_host = true}, Sharing{.on_host = true, .by_mpi = true}}) {
    for (const std::size_t size : {7, 140'003}) {
      INFO((sharing.by_mpi ? "by MPI" : sharing.on_host ? "in place" : "staged"));
      WorkerOptions options = Model::options(RemotePathChoice::two_sided);
      options.accelerator = std::make_shared<HostAccelerator>(sharing, std::size_t{16} << 20);
      check_cycle(group, rule_on(group, 2), hosts, size, options);
    }
  }
}

TEST_CASE("the schedule does not change while shards are on their way to other hosts") {
  const Group group(world());
  Model model(group, topology_on_hosts("sharded_one_peer", group.hosts()), 1000,
              RemotePathChoice::two_sided);
  const auto change = [&] {
    model.worker.set_schedule(topology_on_hosts("hierarchical_one_peer", group.hosts()));
  };
  if (several_hosts(group)) {
    CHECK_THROWS_WITH(change(), Catch::Contains("messages to other hosts are shards"));
  } else {
    CHECK_NOTHROW(change());
  }
  model.idle(3);
  model.worker.await_finish();
}

TEST_CASE("hosts send as many bytes as with one representative, and each worker its share") {
  const Group group(world());
  if (!several_hosts(group)) return;
  const Hosts hosts = hosts_of(group, 1);
  const int host = group.rank() / hosts.per_host;
  constexpr std::size_t size = 1'000'003, bytes = size * sizeof(double);
  const Schedule of_one = schedule::hierarchical_one_peer(hosts.per_host).make(group.size());
  const auto period = static_cast<int>(of_one.period());
  int exchanges = 0, rounds_within = 0;
  for (int t = 0; t < period; ++t) {
    const bool between = of_one.at(t).name() == "between hosts";
    rounds_within += between ? 0 : 1;
    for (int p = 0; between && p < hosts.per_host; ++p)
      exchanges += of_one.at(t).in_degree(host * hosts.per_host + p);
  }
  for (const char* name : {"hierarchical_one_peer", "sharded_one_peer"}) {
    INFO(name << ", host " << host << ", " << exchanges << " exchanges");
    Model model(group, topology_on_hosts(name, group.hosts()), size, RemotePathChoice::two_sided);
    group.barrier(Deadline(Seconds(40)), "test");
    const double before = sent_bytes();
    group.barrier(Deadline(Seconds(40)), "test");  // nobody sends before all have looked
    double last = 0, most = 0;                     // of this worker in a round between hosts
    for (int t = 0; t < period; ++t) {
      model.idle(1);
      const double now = model.worker.stats().bytes_sent;
      if (of_one.at(t).name() == "between hosts") most = std::max(most, now - last);
      last = now;
    }
    group.barrier(Deadline(Seconds(40)), "test");
    const double expected = static_cast<double>(exchanges) * bytes;
    const double of_host = sent_bytes() - before;
    const double of_worker = model.worker.stats().bytes_sent - static_cast<double>(rounds_within) *
                                                                   (hosts.per_host - 1) *
                                                                   static_cast<double>(bytes);
    if (group.rank() % hosts.per_host == 0)
      fmt::print(
          "{}: host {} sent {:.1f} MB, {:.1f} MB of payloads; its first worker {:.1f} MB, "
          "{:.2f} MB in a round\n",
          name, host, of_host / 1e6, expected / 1e6, of_worker / 1e6, most / 1e6);
    CHECK(of_host >= expected);
    CHECK(of_host <= 1.15 * expected + 1e6);
    const bool sharded = std::string(name) == "sharded_one_peer";
    if (sharded) CHECK(std::abs(of_worker - expected / hosts.per_host) <= 64.0 * exchanges);
    CHECK(std::abs(most - static_cast<double>(bytes) / (sharded ? hosts.per_host : 1)) <= 64);
    model.worker.await_finish();
  }
}
