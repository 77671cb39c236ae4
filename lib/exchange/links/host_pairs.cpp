#include "exchange/links/host_pairs.hpp"

#include <algorithm>

namespace fast::exchange {
namespace {

/// One place stays, the others turn. With an odd number of hosts, one place is empty.
HostPairs round_of_tournament(int hosts, int round) {
  const int places = hosts + hosts % 2, turning = places - 1;
  const auto add = [&](HostPairs& pairs, int a, int b) {
    if (a < hosts && b < hosts) pairs.emplace_back(std::min(a, b), std::max(a, b));
  };
  HostPairs pairs;
  add(pairs, turning, round);
  for (int k = 1; k < places / 2; ++k) {
    add(pairs, (round + k) % turning, (round - k + turning) % turning);
  }
  return pairs;
}

}  // namespace

std::vector<HostPairs> host_pairs(int hosts, int most_rounds) {
  std::vector<HostPairs> rounds;
  if (hosts < 2) return rounds;
  const int all = hosts + hosts % 2 - 1, wanted = std::min(all, most_rounds);
  for (int k = 0; k < wanted; ++k) {
    const auto spread = static_cast<int>(static_cast<long long>(k) * all / wanted);
    rounds.push_back(round_of_tournament(hosts, spread));
  }
  return rounds;
}

}  // namespace fast::exchange
