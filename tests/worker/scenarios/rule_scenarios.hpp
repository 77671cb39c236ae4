// What rules must do through a Worker on any group, beside their golden trajectories. Each throws
// std::runtime_error when something is wrong. Cases are those of docs/reference/algorithms.md.
#pragma once

#include <fast/exchange/group.hpp>

namespace fast::testing {

void push_sum_keeps_the_mass(const Group& group);                        ///< case 6; 4 workers
void push_sum_finds_the_mean_whatever_is_read_late(const Group& group);  ///< 4 workers
void one_peer_exponential_averages_exactly(const Group& group);          ///< case 4; powers of two
void misfits_are_refused_everywhere(const Group& group);
void a_missing_learning_rate_is_refused(const Group& group);
void d2_takes_lazy_weights_where_it_must(const Group& group);
void a_worker_that_does_not_move_does_not_send(const Group& group);
void held_messages_stay_in_force_for_slow_readers(const Group& group);
void gossip_pga_averages_all(const Group& group);
void pairs_average_and_keep_the_mean(const Group& group);
void gradient_exchange_adds_the_neighbors_steps(const Group& group);
void choco_publishes_weights_for_the_mean_model(const Group& group);
void relay_sum_averages_buffers_by_the_mixing_weights(const Group& group);
void every_rule_trains_and_republishes(const Group& group);

}  // namespace fast::testing
