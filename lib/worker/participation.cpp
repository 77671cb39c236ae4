#include "worker/participation.hpp"

#include <fast/core/error.hpp>

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
  if (members_) members_->spread_news();
}

bool Participation::abandon() noexcept {
  if (departed_) return true;  // nobody waits for this worker any more; it reports its own errors
  if (failed_) return false;
  failed_ = true;
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

}  // namespace fast::worker
