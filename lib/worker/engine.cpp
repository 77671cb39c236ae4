#include "worker/engine.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>

#include "combine/device_mixer.hpp"
#include "combine/host_mixer.hpp"
#include "mpi/launcher.hpp"
#include "worker/device_link.hpp"
#include "worker/startup.hpp"
#include "worker/stopwatch.hpp"

namespace fast::worker {
namespace {

codec::Options own_codec(codec::Options codec, int rank) {
  codec.seed = mix_seed(codec.seed, static_cast<std::uint64_t>(rank));
  return codec;
}

std::unique_ptr<combine::Mixer> make_mixer(ParameterLayout layout, const WorkerOptions& options,
                                           int rank) {
  const codec::Options codec = own_codec(options.codec, rank);
  if (options.accelerator) {
    return std::make_unique<combine::DeviceMixer>(std::move(layout), options.algorithm, codec,
                                                  options.accelerator);
  }
  return std::make_unique<combine::HostMixer>(
      std::move(layout), options.algorithm, codec,
      sends_sums(options.algorithm->declaration(), options));
}

}  // namespace

Engine::Engine(Group group, Schedule schedule, ParameterLayout layout, WorkerOptions options)
    : group_(std::move(group)),
      options_(std::move(options)),
      algorithm_(options_.algorithm),
      declared_(algorithm_->declaration()),
      mixer_(make_mixer(std::move(layout), options_, group_.rank())),
      plan_(std::make_shared<RoundPlan>(std::move(schedule), group_.rank(), options_.weights,
                                        options_.lazy_weights, passes_mass())),
      presence_(group_.size()) {
  const bool weights_apart =
      declared_.publishes_weights_apart || options_.codec.kind != codec::Kind::identity;
  shape_ = {mixer_->coded().size_bytes(), declared_.payload_vectors, mixer_->scalar_count(),
            weights_apart ? mixer_->layout().size_bytes() : 0};
  link_ = open_link();
  reader_.emplace(*link_.exchange, link_.peers, *mixer_, shape_);
  if (declared_.scope == algorithm::Scope::everybody || declared_.average_every > 0) {
    ExchangeOptions options = exchange_options();
    options.activity = [peers = link_.peers, self = group_.rank()] {
      return peers->peer(self).activity;
    };
    average_.emplace(group_, options, *mixer_);
  }
  if (options_.initial == Initial::broadcast) adopt_initial();
  mixer_->start(options_.initial == Initial::broadcast);
  publish_first(0);
  link_.peers->announce(WorkerStatus::running);
  group_.barrier(Deadline(options_.deadline), "Worker: first publication");
  mpi::tell_launcher_training_began();
}

Link Engine::open_link() {
  EdgePlan edges = [plan = plan_, declared = declared_](std::int64_t round) {
    return talks_in(declared, round) ? plan->at(round)->edges : RoundEdges{};
  };
  return worker::open_link(group_, shape_, options_.codec.kind == codec::Kind::identity,
                           std::move(edges), exchange_options(), options_.accelerator);
}

ExchangeOptions Engine::exchange_options() const {
  ExchangeOptions exchange;
  exchange.staleness = options_.staleness;
  exchange.deadline = options_.deadline;
  exchange.suspect_after = options_.suspect_after;
  exchange.remote_path = options_.remote_path;
  exchange.remote_bytes_per_s = options_.remote_bytes_per_s;
  exchange.log = options_.log;
  return exchange;
}

void Engine::adopt_initial() {
  if (group_.rank() == 0) publish_weights();
  group_.barrier(Deadline(options_.deadline), "Worker: adopting worker 0's weights");
  if (group_.rank() != 0) {
    const AlignedBuffer packed(layout().size_bytes());
    require(reader_->read(0, packed), ErrorKind::internal,
            "Worker: worker 0's initial weights could not be read");
    mixer_->copy_weights_from(packed.data());
  }
  group_.barrier(Deadline(options_.deadline), "Worker: adopting worker 0's weights");
}

void Engine::publish_current(const algorithm::RoundInfo& info) {
  const Stopwatch watch(stats_.publish_s);
  const bool sends = mixer_->begin_publish(link_.exchange->published(), info);
  if (sends) mixer_->publish(link_.exchange->acquire(), info);
  link_.exchange->publish(info.round, declared_.publishes_weights_apart);
  sent_ = sends;
}

/// The weights alone, for mean models; no neighbor takes them for a round's message at staleness
/// 0.
void Engine::publish_weights() {
  const Stopwatch watch(stats_.publish_s);
  const bool exact = options_.staleness == 0;
  const MutablePayload next = link_.exchange->acquire();
  mixer_->publish_weights(next, !exact);
  link_.exchange->publish(exact ? no_round : combinations_, next.weights != nullptr);
  link_.exchange->flush();
}

void Engine::publish_first(std::int64_t round) {
  if (before_step()) {
    publish_current({.round = round});
    link_.exchange->flush();
  } else {
    publish_weights();
  }
}

void Engine::begin_round() {
  require(!left_, ErrorKind::argument, "Worker: begin_round after finish()");
  step_began_ = Clock::now();
  const bool knows_now = before_step() && options_.staleness == 0;
  if (knows_now && combines_next() && talks_in(declared_, combinations_)) {
    link_.exchange->begin_fetch(combinations_);
  }
}

void Engine::end_round(const StepOptions& options) {
  stats_.step_s += Seconds(Clock::now() - step_began_).count();
  require(!declared_.needs_learning_rate || options.learning_rate > 0, ErrorKind::argument,
          "Worker: algorithm {} divides by the learning rate, which was given as {}; pass it with "
          "step(train, {{.learning_rate = rate}})",
          declared_.name, options.learning_rate);
  if (options_.not_finite == NotFinite::heal && !rotates_) heal();
  const algorithm::RoundInfo info{.round = combinations_,
                                  .asynchronous = options_.staleness > 0,
                                  .learning_rate = options.learning_rate};
  if (combines_next()) {
    if (averages_all(declared_, info.round)) {
      average_exactly(info);
    } else if (declared_.scope == algorithm::Scope::neighbors) {
      combine_neighbors(info);
    } else if (declared_.scope == algorithm::Scope::everybody) {
      combine_everybody(info);
    }
    ++combinations_;
  }
  ++stats_.rounds;
  link_.peers->note_progress();
  take_census();
  if (options_.on_round) options_.on_round(stats_.rounds);
}

void Engine::republish() {
  // What was published for the coming round may be on its way to readers, who must not take it.
  if (options_.staleness == 0 && before_step()) link_.exchange->complete(++combinations_);
  mixer_->restart(mixer_->epoch() + 1);
  publish_first(combinations_);
}

void Engine::rebind(std::vector<TensorView> parameters) {
  mixer_->rebind(layout().rebound(worker::participating(std::move(parameters), options_)));
}

void Engine::set_schedule(const TopologyRule& rule) {
  require(!sends_sums(declared_, options_), ErrorKind::argument,
          "Worker: set_schedule with algorithm {} at staleness {}, whose messages are running sums "
          "over edges that stay; make a new Worker",
          declared_.name, options_.staleness);
  const Schedule schedule = rule.make(group_.size());
  const Weights weights = fitting_weights(schedule, options_, declared_);
  plan_->change(schedule, combinations_, weights.rule, weights.lazy);
}

void Engine::finish() {
  if (left_) return;
  if (rotates_) mixer_->copy_weights_from(link_.exchange->published().data);
  // The final weights may differ from the last publication (after-step rules, steps since the last
  // combination).
  publish_weights();
  link_.peers->announce(WorkerStatus::finished);
  left_ = true;
}

bool Engine::abandon() noexcept {
  if (left_) return false;
  left_ = true;
  return link_.peers->announce(WorkerStatus::failed);
}

}  // namespace fast::worker
