#include "worker/participation.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>

#include "core/numbers.hpp"
#include "exchange/group_impl.hpp"
#include "mpi/launcher.hpp"

namespace fast::worker {

bool Participation::looks_at_seat() {
  if (members_->map().has_seat()) return true;
  worker_.warn(fmt::format(
      "worker {}: a spare has taken its seat while it showed no sign of life; it leaves",
      worker_.rank()));
  replaced_ = ended_ = true;
  mpi::notify_launcher(mpi::LauncherNote::lost_seat);
  peers_->announce(WorkerStatus::finished);
  return false;
}

/// The final weights may differ from the last publication: by steps since the last combination, or
/// where the rule publishes after the step.
void Participation::finish(Publisher& publisher) {
  if (ended_) return;
  publisher.publish_weights();
  peers_->announce(WorkerStatus::finished);
  ended_ = true;
}

void Participation::leave() {
  const algorithm::RuleTraits& traits = worker_.setting.traits;
  require(traits.topology.scope != algorithm::Scope::everybody && traits.timing.average_every == 0,
          ErrorKind::argument,
          "Worker: worker {} cannot leave: algorithm {} averages over all workers; stop the run "
          "and resume it with fewer",
          worker_.rank(), traits.name);
  if (ended_) return;
  worker_.exchange.flush();
  peers_->announce(WorkerStatus::left);
  mpi::notify_launcher(mpi::LauncherNote::lost_seat);
  departed_ = ended_ = true;
  if (members_) members_->coordinator()->spread_news();
}

bool Participation::abandon() noexcept {
  if (departed_) return true;  // nobody waits for this worker any more; it reports its own errors
  if (failed_) return false;
  failed_ = true;
  const auto& part = GroupImpl::of(worker_.setting.group).part();
  if (!part) return announce_failure();
  const bool reports = part->note_failure();
  announce_failure();
  return reports;
}

/// False if another worker has failed before.
bool Participation::announce_failure() noexcept {
  if (ended_) return members_ || peers_->announce(WorkerStatus::failed);  // the others go on
  ended_ = true;
  if (members_ && members_->map().is_spare(members_->map().rank())) {
    vacate();
    return true;
  }
  return peers_->announce(WorkerStatus::failed);
}

/// The others go on as if they had no such spare.
void Participation::vacate() noexcept {
  members_->release();
  worker_.setting.group.disable_collectives();
  mpi::notify_launcher(mpi::LauncherNote::lost_seat);
}

namespace {

using membership::NumberedRound;
using membership::RoundDecision;

constexpr double epochs_per_growth = 1e9;
/// Within this time all workers hear of a growth, mostly.
constexpr double hear_of_growth_s = 0.5;
constexpr double most_rounds_ahead = 1e5;

}  // namespace

double epoch_of_growth(int growth) { return epochs_per_growth * growth; }
int growths_before(double epoch) { return saturate<int>(epoch / epochs_per_growth); }

void Growth::allow(const GrowthRounds& rounds) {
  require(rounds.every >= 1, ErrorKind::argument,
          "Worker: workers join every {} rounds; 1 or more are required", rounds.every);
  if (members_) members_->growth().allow(rounds);
}

std::string Growth::why_not() const {
  if (worker_.setting.traits.topology.scope == algorithm::Scope::nobody)
    return fmt::format("algorithm {} averages with nobody", worker_.setting.traits.name);
  if (worker_.setting.sends_sums())
    return fmt::format(
        "algorithm {} at a staleness above 0 sends running sums over edges that must stay",
        worker_.setting.traits.name);
  if (!members_->growth().is_allowed() && members_->map().entered() == 0)
    return "the program does not allow it (Worker::allow_growth)";
  if (members_->growth().spares_left() < 1) return "no spare is left";
  try {
    wiring_.of(members_->map().founders() + members_->growth().wanted() + 1, worker_.options());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void Growth::hear_launcher() {
  for (const int asked = mpi::growths_asked(); heard_ < asked; ++heard_) {
    const std::string reason = why_not();
    if (reason.empty()) {
      members_->growth().request();
      mpi::notify_launcher(mpi::LauncherNote::grows);
    } else {
      mpi::notify_launcher(mpi::LauncherNote::refuses_growth);
      worker_.warn(fmt::format("worker {}: no worker can join: {}; training goes on",
                               worker_.rank(), reason));
    }
  }
}

/// So many rounds are made while all workers hear of a growth.
std::int64_t Growth::rounds_ahead() {
  const double elapsed_s = std::max(1e-6, Seconds(Clock::now() - began_).count());
  const double rounds = hear_of_growth_s * static_cast<double>(++looks_) / elapsed_s;
  return static_cast<std::int64_t>(std::ceil(std::min(rounds, most_rounds_ahead)));
}

/// The topology of a run that has grown so often, from that combination on.
void Growth::change(int growths, std::int64_t from) {
  const ResolvedTopology wired =
      wiring_.of(members_->map().founders() + growths, worker_.options());
  plan_.change(wired.schedule, from, wired.weights.rule, wired.weights.lazy);
  prepared_ = growths;
}

int Growth::begin(std::int64_t rounds) {
  const int planned = members_->map().entered();
  members_->growth().begin(rounds);
  const int entered = members_->map().entered();
  if (entered > planned) change(entered, worker_.progress.combinations);
  prepare(rounds);
  return entered;
}

/// In the round before, so that what is published for the growth's round reaches its readers.
void Growth::prepare(std::int64_t rounds) {
  if (!members_) return;
  const std::optional<NumberedRound> coming = members_->growth().coming();
  if (!coming || rounds + 1 < coming->round) return;
  const auto number = static_cast<int>(coming->number);
  if (number <= prepared_) return;
  const std::int64_t steps = worker_.setting.steps();
  const std::int64_t first =
      worker_.setting.combinations_of(coming->round + steps - 1) + worker_.progress.republished;
  change(number, std::max(first, worker_.progress.combinations));
}

bool Growth::look_around() {
  hear_launcher();
  const std::int64_t rounds = worker_.progress.stats.rounds;
  const RoundDecision turn =
      members_->growth().take_turn(rounds, rounds_ahead(), worker_.options().deadline);
  prepare(rounds);
  if (turn != RoundDecision::enter) return false;
  members_->growth().enter();
  return true;
}

}  // namespace fast::worker
