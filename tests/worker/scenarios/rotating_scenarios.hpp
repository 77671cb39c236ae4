// What a Worker whose weights live in its slots must do on any group. Each throws
// std::runtime_error when something is wrong.
#pragma once

#include <fast/exchange/group.hpp>

namespace fast::testing {

void a_rotating_arena_trains_as_a_fixed_one(const Group& group);
void a_rotating_arena_is_not_torn(const Group& group);
void misfits_do_not_rotate(const Group& group);

}  // namespace fast::testing
