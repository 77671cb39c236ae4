#include <fast/core/error.hpp>
#include <fast/exchange/group.hpp>
#include <thread>

#include "exchange/links/measured_links.hpp"
#include "exchange/links/mpi_trials.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

LinkMeasureOptions quick() {
  LinkMeasureOptions options;
  options.budget = Seconds(0.5);
  options.answer_within = Seconds(20);
  return options;
}

}  // namespace

TEST_CASE("all ranks get the same figures of one host") {
  const auto& world = testing::world();
  const std::vector<int> hosts(static_cast<std::size_t>(world.size()), 0);
  const MeasuredLinks found = measure_links(world, hosts, quick());
  CHECK(found.memory_bandwidth > 0);
  CHECK(found.latency_s > 0);
  const auto bandwidths =
      world.all_gather(fmt::format("{:a} {:a}", found.bandwidth, found.latency_s),
                       Deadline(Seconds(20)), "comparing");
  for (const std::string& each : bandwidths) CHECK(each == bandwidths.front());
}

TEST_CASE("ranks that count as hosts of their own are measured in pairs") {
  const auto& world = testing::world();
  std::vector<int> hosts;
  for (int rank = 0; rank < world.size(); ++rank) hosts.push_back(rank);
  const MeasuredLinks found = measure_links(world, hosts, quick());
  CHECK(found.bandwidth > 1e6);
  CHECK(found.lone_bandwidth > 1e6);
  CHECK(found.latency_s > 0);
  CHECK(found.memory_bandwidth == 0);
  if (world.rank() == 0) {
    CHECK(!found.pairs.empty());  // as many as fit in the budget
  }
}

TEST_CASE("the lowest rank that lives reports that the trials' leader is gone") {
  const auto& world = testing::world();
  const mpi::Messages messages(world, Deadline(Seconds(20)));
  const int last = world.size() - 1;
  // As a launcher reports it: all but the last two ranks have ended.
  const auto ended = [&] {
    std::vector<int> ranks;
    for (int rank = 0; rank < std::max(1, last - 1); ++rank) ranks.push_back(rank);
    return ranks;
  };
  const int speaker = std::max(1, last - 1);
  if (world.rank() >= speaker) {
    try {
      exchange::serve_trials(messages, world.rank(), Seconds(0.5), Seconds(300), ended);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Contains("heard nothing from rank 0"));
      CHECK(error.kind() ==
            (world.rank() == speaker ? ErrorKind::deadline : ErrorKind::peer_failed));
    }
  }
  world.barrier(Deadline(Seconds(40)), "after the leader's end");
}

TEST_CASE("a rank that does not answer is named on all others") {
  const auto& world = testing::world();
  const mpi::Messages messages(world, Deadline(Seconds(20)));
  const Deadline whole(Seconds(40));
  const int silent = world.size() - 1;
  std::vector<std::string> names;
  for (int rank = 0; rank < world.size(); ++rank) names.push_back("host" + std::to_string(rank));
  if (world.rank() == 0) {
    exchange::MpiTrials trials(messages, names, Seconds(0.5));
    std::vector<exchange::Flow> flows;
    for (int rank = 1; rank < world.size(); ++rank) flows.push_back({0, rank, 100});
    std::string error;
    try {
      trials.run(flows, 3);
    } catch (const Error& caught) {
      error = caught.what();
    }
    CHECK_THAT(error,
               Contains(fmt::format("host host{} (rank {}) has not answered", silent, silent)));
    trials.give_up(error);
  } else if (world.rank() != silent) {
    CHECK_THROWS_WITH(exchange::serve_trials(messages, world.rank(), Seconds(0.5), Seconds(30)),
                      Contains(fmt::format("rank {}) has not answered", silent)));
  }
  world.barrier(whole, "after the silence");
}

TEST_CASE("one rank is refused") {
  CHECK_THROWS_WITH(measure_links(testing::world(), {}, quick()),
                    Contains("a host each, are required"));
}
