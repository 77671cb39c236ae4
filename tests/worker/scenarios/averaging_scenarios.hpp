// What a Worker's rounds must come to on any group. Each throws std::runtime_error when something
// is wrong. Cases are those of docs/reference/algorithms.md.
#pragma once

#include <fast/exchange/group.hpp>

namespace fast::testing {

void one_round_closed_forms(const Group& group);         ///< cases 1 and 2
void mean_is_kept(const Group& group);                   ///< case 3
void complete_atc_equals_allreduce(const Group& group);  ///< case 5
void slow_worker_on_directed_ring_is_exact(const Group& group);
void buffers_are_averaged_and_integers_left_alone(const Group& group);
void sixteen_bit_weights_average(const Group& group);
void unbounded_staleness_reaches_consensus(const Group& group);
void bounded_staleness_holds_its_bound(const Group& group);
void mean_model_and_distance_are_those_of_the_replicas(const Group& group);
void reduced_models_are_those_of_the_replicas(const Group& group);
void scattered_tensors_and_partial_participation(const Group& group);
void mixing_every_third_step(const Group& group);
void the_mean_is_watched_while_all_go_on(const Group& group);
void several_averages_in_a_step(const Group& group);

}  // namespace fast::testing
