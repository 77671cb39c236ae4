#include "exchange/links/link_measurement.hpp"

#include <set>

#include "support/catch.hpp"

using fast::exchange::host_pairs;

TEST_CASE("with enough rounds, each two hosts are a pair once") {
  for (int hosts = 2; hosts <= 9; ++hosts) {
    INFO(hosts << " hosts");
    std::set<std::pair<int, int>> seen;
    for (const auto& pairs : host_pairs(hosts, 20)) {
      for (const auto& pair : pairs) {
        CHECK(pair.first < pair.second);
        CHECK(seen.insert(pair).second);
      }
    }
    CHECK(static_cast<int>(seen.size()) == hosts * (hosts - 1) / 2);
  }
}

TEST_CASE("the pairs of a round are disjoint, also in a sample of the rounds") {
  for (const int hosts : {2, 5, 12, 101}) {
    const auto rounds = host_pairs(hosts, 4);
    CHECK(rounds.size() <= 4);
    std::set<std::pair<int, int>> seen;
    for (const auto& pairs : rounds) {
      std::set<int> busy;
      for (const auto& [first, second] : pairs) {
        CHECK(busy.insert(first).second);
        CHECK(busy.insert(second).second);
        CHECK(seen.emplace(first, second).second);
        CHECK(second < hosts);
      }
      CHECK(static_cast<int>(pairs.size()) == hosts / 2);
    }
  }
  CHECK(host_pairs(1, 4).empty());
}
