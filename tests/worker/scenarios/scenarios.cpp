#include "worker/scenarios/scenarios.hpp"

#include "worker/scenarios/averaging_scenarios.hpp"
#include "worker/scenarios/codec_scenarios.hpp"
#include "worker/scenarios/device_scenarios.hpp"
#include "worker/scenarios/life_scenarios.hpp"
#include "worker/scenarios/outer_scenarios.hpp"
#include "worker/scenarios/remote_scenarios.hpp"
#include "worker/scenarios/rotating_scenarios.hpp"
#include "worker/scenarios/rule_scenarios.hpp"

namespace fast::testing {

#define FAST_SCENARIO(name) \
  NamedScenario { #name, name }

const std::vector<NamedScenario>& scenarios() {
  static const std::vector<NamedScenario> all{
      FAST_SCENARIO(one_round_closed_forms),
      FAST_SCENARIO(mean_is_kept),
      FAST_SCENARIO(complete_atc_equals_allreduce),
      FAST_SCENARIO(slow_worker_on_directed_ring_is_exact),
      FAST_SCENARIO(broadcast_gives_all_worker_0s_weights),
      FAST_SCENARIO(frozen_tensors_become_worker_0s),
      FAST_SCENARIO(frozen_tensors_that_differ_are_refused_everywhere),
      FAST_SCENARIO(tensors_left_out_that_differ_are_named_once),
      FAST_SCENARIO(buffers_are_averaged_and_integers_left_alone),
      FAST_SCENARIO(sixteen_bit_weights_average),
      FAST_SCENARIO(unbounded_staleness_reaches_consensus),
      FAST_SCENARIO(bounded_staleness_holds_its_bound),
      FAST_SCENARIO(mean_model_and_distance_are_those_of_the_replicas),
      FAST_SCENARIO(reduced_models_are_those_of_the_replicas),
      FAST_SCENARIO(different_models_are_refused_everywhere),
      FAST_SCENARIO(different_options_are_refused_everywhere),
      FAST_SCENARIO(nan_loss_stops_everybody_once),
      FAST_SCENARIO(early_finishers_drop_out),
      FAST_SCENARIO(scattered_tensors_and_partial_participation),
      FAST_SCENARIO(mixing_every_third_step),
      FAST_SCENARIO(the_mean_is_watched_while_all_go_on),
      FAST_SCENARIO(several_averages_in_a_step),
      FAST_SCENARIO(schedule_change_takes_effect),
      FAST_SCENARIO(rebinding_follows_moved_memory),
      FAST_SCENARIO(several_workers_live_side_by_side),
      FAST_SCENARIO(push_sum_keeps_the_mass),
      FAST_SCENARIO(push_sum_finds_the_mean_whatever_is_read_late),
      FAST_SCENARIO(one_peer_exponential_averages_exactly),
      FAST_SCENARIO(misfits_are_refused_everywhere),
      FAST_SCENARIO(a_missing_learning_rate_is_refused),
      FAST_SCENARIO(d2_takes_lazy_weights_where_it_must),
      FAST_SCENARIO(a_worker_that_does_not_move_does_not_send),
      FAST_SCENARIO(held_messages_stay_in_force_for_slow_readers),
      FAST_SCENARIO(gossip_pga_averages_all),
      FAST_SCENARIO(pairs_average_and_keep_the_mean),
      FAST_SCENARIO(gradient_exchange_adds_the_neighbors_steps),
      FAST_SCENARIO(choco_publishes_weights_for_the_mean_model),
      FAST_SCENARIO(relay_sum_averages_buffers_by_the_mixing_weights),
      FAST_SCENARIO(every_rule_trains_and_republishes),
      FAST_SCENARIO(outer_rules_keep_the_mean_whatever_is_combined),
      FAST_SCENARIO(a_rotating_arena_trains_as_a_fixed_one),
      FAST_SCENARIO(a_rotating_arena_is_not_torn),
      FAST_SCENARIO(misfits_do_not_rotate),
      FAST_SCENARIO(devices_train_as_hosts_do),
      FAST_SCENARIO(devices_read_each_other_by_mpi),
      FAST_SCENARIO(memory_that_mpi_misreads_is_staged),
      FAST_SCENARIO(every_remote_path_gives_the_same_bits),
      FAST_SCENARIO(no_remote_path_tears),
      FAST_SCENARIO(republished_weights_replace_those_under_way),
      FAST_SCENARIO(a_capped_worker_sends_no_faster),
  };
  return all;
}

const std::vector<NamedScenario>& scenarios_of_codecs() {
  static const std::vector<NamedScenario> all{
      FAST_SCENARIO(every_codec_keeps_the_mean_and_comes_to_agree),
      FAST_SCENARIO(coded_rules_train_to_the_common_optimum),
      FAST_SCENARIO(weights_are_adopted_and_finished_exactly_under_any_codec),
      FAST_SCENARIO(coded_messages_are_as_short_as_they_are_said_to_be),
      FAST_SCENARIO(coded_messages_do_not_tear),
      FAST_SCENARIO(buffers_stay_exact_under_any_codec),
      FAST_SCENARIO(memory_may_lie_differently_on_each_worker_under_any_codec),
      FAST_SCENARIO(codecs_that_do_not_fit_are_refused_everywhere),
  };
  return all;
}

#undef FAST_SCENARIO

}  // namespace fast::testing
