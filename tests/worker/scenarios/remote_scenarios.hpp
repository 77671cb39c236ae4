// What must hold however workers of other hosts are reached; nothing else than elsewhere where all
// share one. Each throws std::runtime_error when something is wrong.
#pragma once

#include <fast/exchange/group.hpp>

namespace fast::testing {

void every_remote_path_gives_the_same_bits(const Group& group);
void no_remote_path_tears(const Group& group);
void republished_weights_replace_those_under_way(const Group& group);
void a_capped_worker_sends_no_faster(const Group& group);

}  // namespace fast::testing
