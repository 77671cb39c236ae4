// What a Worker must do whatever its messages are coded with; more of worker/scenarios.hpp.
#pragma once

#include <fast/exchange/group.hpp>

namespace fast::testing {

void every_codec_keeps_the_mean_and_comes_to_agree(const Group& group);
void coded_rules_train_to_the_common_optimum(const Group& group);
void weights_are_adopted_and_finished_exactly_under_any_codec(const Group& group);
void coded_messages_are_as_short_as_they_are_said_to_be(const Group& group);
void coded_messages_do_not_tear(const Group& group);
void buffers_stay_exact_under_any_codec(const Group& group);
void memory_may_lie_differently_on_each_worker_under_any_codec(const Group& group);
void codecs_that_do_not_fit_are_refused_everywhere(const Group& group);

}  // namespace fast::testing
