// Workers under the schedule hierarchical_one_peer, on ranks of one host or of several.
#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/closing.hpp>

#include <algorithm>
#include <numeric>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "worker/constant.hpp"

using namespace fast;
using testing::Constant;

namespace {

/// Of Base-2 among that many hosts, and within hosts.
int rounds_to_exact(int hosts, int per_host) {
  const int among = static_cast<int>(schedule::base(1).make(hosts).period());
  if (per_host == 1) return among;
  return hosts == 1 ? 1 : 1 + 2 * among;
}

void check_exact(const Group& group, const TopologyRule& rule, int rounds) {
  Constant c(group, rule, group.rank() + 1);
  c.idle(rounds);
  const double mean = (group.size() + 1) / 2.0;
  for (const double value : c.x) CHECK(std::abs(value - mean) < 1e-12 * mean);
  c.worker.await_finish();
}

}  // namespace

TEST_CASE("ranks have the exact mean after a cycle, whatever their number per host") {
  const Group group(testing::world());
  for (int per_host = 1; per_host <= group.size(); ++per_host) {
    if (group.size() % per_host != 0) continue;
    INFO(group.size() << " ranks, hosts of " << per_host);
    check_exact(group, schedule::hierarchical_one_peer(per_host),
                rounds_to_exact(group.size() / per_host, per_host));
  }
}

TEST_CASE("on the run's own hosts the mean is exact, and one worker per host sends to another") {
  const Group group(testing::world());
  const std::vector<int> hosts = group.hosts();
  const auto per_host = static_cast<int>(std::count(hosts.begin(), hosts.end(), hosts.front()));
  const int count = group.size() / per_host;
  const TopologyRule rule = topology_on_hosts("hierarchical_one_peer", hosts);
  if (count == 1) {
    check_exact(group, rule, static_cast<int>(rule.make(group.size()).period()));
    return;
  }
  const int cycle = rounds_to_exact(count, per_host);
  check_exact(group, rule, cycle);

  // What this worker has sent in a period: to its host in rounds within hosts, to one otherwise.
  Constant c(group, rule, group.rank());
  const auto period = static_cast<int>(rule.make(group.size()).period());
  c.idle(period);
  const int exchanges = static_cast<int>(schedule::base(1).make(count).period());
  const int cycles = period / cycle;
  const std::int64_t within = std::int64_t{per_host - 1} * (cycle - exchanges) * cycles;
  const std::int64_t across = c.worker.stats().messages_sent - within;
  const auto sent = group.all_gather(std::to_string(across), Deadline(Seconds(40)), "test");
  for (int host = 0; host < count; ++host) {
    std::int64_t of_host = 0;
    for (int rank = 0; rank < group.size(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (hosts[r] == host * per_host) of_host += std::stoll(sent[r]);
    }
    INFO("host " << host);
    CHECK(of_host <= std::int64_t{exchanges} * cycles);
    if ((count & (count - 1)) == 0) CHECK(of_host == std::int64_t{exchanges} * cycles);
  }
  c.worker.await_finish();
}

TEST_CASE("a cycle of closing rounds brings every replica to the exact mean") {
  const Group group(testing::world());
  const int per_host = group.size() % 2 == 0 ? 2 : 1;
  const TopologyRule rule = schedule::hierarchical_one_peer(per_host);
  const Schedule schedule = rule.make(group.size());
  const Spectrum found = spectrum(schedule);
  const std::int64_t rounds = closing_rounds(schedule, found);
  CHECK(rounds == (group.size() == 1 ? 0 : rounds_to_exact(group.size() / per_host, per_host)));
  std::vector<double> x(5, group.rank() + 1);
  close_training(group, rule, found, {view_of("x", std::span(x))}, rounds, testing::quick());
  for (const double value : x) CHECK(std::abs(value - (group.size() + 1) / 2.0) < 1e-12);
}
