// Who is measured with whom.
#pragma once

#include <utility>
#include <vector>

namespace fast::exchange {

using HostPairs = std::vector<std::pair<int, int>>;

/// At most so many rounds of pairs of hosts. The pairs of a round are disjoint, and no pair is in
/// two rounds. If there are enough rounds, each two hosts are a pair (circle method of
/// tournaments); else the rounds are spread evenly over the tournament.
std::vector<HostPairs> host_pairs(int hosts, int most_rounds);

}  // namespace fast::exchange
