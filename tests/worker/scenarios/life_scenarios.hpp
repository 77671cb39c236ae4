// How a Worker begins, changes on its way and ends, on any group. Each throws std::runtime_error
// when something is wrong.
#pragma once

#include <fast/exchange/group.hpp>

namespace fast::testing {

void broadcast_gives_all_worker_0s_weights(const Group& group);
void frozen_tensors_become_worker_0s(const Group& group);
void frozen_tensors_that_differ_are_refused_everywhere(const Group& group);
void tensors_left_out_that_differ_are_named_once(const Group& group);
void different_models_are_refused_everywhere(const Group& group);
void different_options_are_refused_everywhere(const Group& group);
void nan_loss_stops_everybody_once(const Group& group);
void early_finishers_drop_out(const Group& group);
void schedule_change_takes_effect(const Group& group);
void rebinding_follows_moved_memory(const Group& group);
void several_workers_live_side_by_side(const Group& group);

}  // namespace fast::testing
