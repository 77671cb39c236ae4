// Schedules: rules whose topology changes from round to round.
#pragma once

#include <fast/topology/schedule.hpp>

namespace fast::schedule {

/// Worker i reads i - 2^(t mod ⌈log₂N⌉) (mod N) in round t: one peer a round. With weights ½ the
/// average over one period is exact when N is a power of two (Ying et al. 2021, arXiv 2110.13363).
TopologyRule one_peer_exponential();

}  // namespace fast::schedule
