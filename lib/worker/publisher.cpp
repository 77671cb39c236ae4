#include "worker/publisher.hpp"

#include <fast/core/error.hpp>

#include "combine/model_memory.hpp"
#include "worker/context.hpp"

namespace fast::worker {

void require_finite(const Context& worker, bool finite) {
  if (finite) return;
  const bool on_host = !worker.options().accelerator;
  const std::string tensor =
      on_host ? combine::first_not_finite(worker.mixer.layout()) : std::string();
  const std::string what = tensor.empty()
                               ? fmt::format(
                                     "its message of algorithm {} has a value that is not "
                                     "finite, though its weights are finite",
                                     worker.setting.traits.name)
                               : fmt::format("tensor {} has a value that is not finite", tensor);
  const bool heals = worker.options().not_finite == NotFinite::heal;
  fail(ErrorKind::numeric,
       "Worker: worker {} in round {}: {}; finite values are required, and nothing was published. "
       "Try a smaller learning rate{}",
       worker.rank(), worker.progress.stats.rounds, what,
       heals ? "" : ", or the option nan=heal, which leaves such a step out");
}

void Publisher::publish(const algorithm::RoundInfo& info) {
  const PhaseTimer timer(worker_, Phase::publish, worker_.progress.stats.publish_s);
  Exchange& exchange = worker_.exchange;
  const bool sends = worker_.mixer.begin_publish(exchange.published(), info);
  if (sends) worker_.mixer.publish(exchange.acquire(), info);
  require_finite(worker_, worker_.mixer.is_finite());
  const auto at = Clock::now();
  exchange.publish(info.round, worker_.setting.traits.messages.weights_apart);
  if (sends) worker_.report_published(at);
  worker_.progress.sent = sends;
}

void Publisher::publish_weights() {
  const PhaseTimer timer(worker_, Phase::publish, worker_.progress.stats.publish_s);
  const bool exact = worker_.setting.exact();
  const MutablePayload next = worker_.exchange.acquire();
  worker_.mixer.publish_weights(next, !exact);
  require_finite(worker_, worker_.mixer.is_finite());
  const auto at = Clock::now();
  worker_.exchange.keep_weights();
  worker_.exchange.publish(exact ? no_round : worker_.progress.combinations,
                           next.weights != nullptr);
  worker_.report_published(at);
  worker_.exchange.flush();
}

void Publisher::begin(std::int64_t round) {
  if (!worker_.setting.before_step()) return publish_weights();
  publish({.round = round});
  worker_.exchange.flush();
}

void Publisher::restart(std::int64_t round, double epoch) {
  worker_.mixer.restart(epoch);
  begin(round);
}

}  // namespace fast::worker
