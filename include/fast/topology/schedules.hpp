// Schedules: rules whose topology changes from round to round. All are computed, by every worker
// for itself, in O(degree).
#pragma once

#include <fast/topology/schedule.hpp>

#include <cstdint>
#include <vector>

namespace fast::schedule {

/// Worker i reads i - 2^(t mod ⌈log₂N⌉) (mod N) in round t: one peer a round. With weights ½ the
/// average over one period is exact when N is a power of two (Ying et al. 2021, arXiv 2110.13363).
TopologyRule one_peer_exponential();

/// The Base-(k+1) graph: at most k neighbors a round, with weights of its own, and the exact
/// average after one period for any N (Takezawa et al. 2023, arXiv 2305.11420). 1 ≤ k ≤ 63.
TopologyRule base(int k);

/// On a ring, pairs (0,1), (2,3), ... and pairs (1,2), (3,4), ... in turn; an odd ring's last edge
/// has a third round of its own.
TopologyRule alternating_pairs();
/// The same along each axis of a torus in turn; empty sides: balanced_sides.
TopologyRule alternating_pairs_torus(std::vector<int> sides = {}, int dimensions = 2);

/// one_peer_exponential in even rounds, the ring in odd ones.
TopologyRule exponential_ring();

/// Pairs drawn anew every round, the same on all workers; with an odd number one sits out. Never
/// repeats.
TopologyRule random_matchings(std::uint64_t seed = 1);

/// One-peer EquiDyn (OD-EquiDyn of Song et al. 2022, arXiv 2210.07881): in round t worker i reads
/// i - u (mod N), u drawn anew from 1..N-1, with weight ½, the paper's η being N/(2(N-1)). The
/// expected square of the disagreement shrinks to (N-2)/(2(N-1)) < ½ in every round, whatever N.
/// Never repeats.
TopologyRule equidyn(std::uint64_t seed = 1);

}  // namespace fast::schedule
