#include "worker/start/worker_start.hpp"

#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <optional>

#include "mpi/launcher.hpp"

namespace fast::worker {
namespace {
constexpr auto adopting = "Worker: adopting worker 0's weights";
}

void WorkerStart::begin() {
  const bool equal = worker_.options().initial == Initial::broadcast;
  if (equal) adopt_initial();
  worker_.mixer.start(equal);
  together("Worker: first publication", [&] {
    publisher_.begin(0);
    peers_.announce(WorkerStatus::running);
  });
  if (members_) members_->map().records().set_status(WorkerStatus::running);
  mpi::notify_launcher(mpi::LauncherNote::training_began);
}

/// What fails on one worker fails on all: initial weights may not be finite.
void WorkerStart::together(std::string_view purpose, const std::function<void()>& part) const {
  agree(worker_.setting.group, Deadline(worker_.options().deadline), purpose, part);
}

/// All workers take worker 0's weights: one worker of each host gets them from there, the others
/// from that worker's slot.
void WorkerStart::adopt_initial() {
  const WorkerOptions& options = worker_.options();
  exchange::HostBroadcast broadcast(worker_.setting.group.founders(),
                                    {options.deadline, options.remote_bytes_per_s, adopting});
  if (broadcast.has_several_hosts()) send_to_leaders(broadcast);
  together(adopting, [&] {
    if (broadcast.leads()) publisher_.publish_weights();
  });
  together(adopting, [&] {
    if (broadcast.leads()) return;
    const AlignedBuffer packed(worker_.mixer.layout().size_bytes());
    require(reader_.read(broadcast.leader(), packed).has_value(), ErrorKind::internal,
            "Worker: worker 0's initial weights could not be read from worker {}",
            broadcast.leader());
    worker_.mixer.memory().copy_weights_from(packed.data());
  });
}

void WorkerStart::send_to_leaders(exchange::HostBroadcast& broadcast) {
  AlignedBuffer packed;
  together(adopting, [&] {
    if (broadcast.leads()) packed = AlignedBuffer(worker_.mixer.layout().size_bytes());
  });
  if (!broadcast.leads()) return broadcast.to_leaders({});
  const bool is_first = worker_.rank() == 0;
  if (is_first) worker_.mixer.memory().copy_weights_to(packed.data());
  broadcast.to_leaders({packed.data(), packed.size_bytes()});
  if (!is_first) worker_.mixer.memory().copy_weights_from(packed.data());
}

Entered WorkerStart::take_seat(const membership::SeatOffer& offer,
                               const Recovery::ComeTo& come_to) {
  worker_.mixer.start(false);
  note_republished(offer.republished);
  const bool joins = offer.growth > members_->map().begun_growths();
  return joins ? join(offer, come_to) : replace(offer, come_to);
}

void WorkerStart::note_republished(std::int64_t combinations) {
  worker_.progress.republished = combinations;
  members_->map().records().set_republished(combinations);
}

void WorkerStart::announce_running() {
  members_->map().records().set_work({.began_in = worker_.progress.stats.joined_at});
  peers_.announce(WorkerStatus::running);
  members_->map().records().set_status(WorkerStatus::running);
}

/// Nobody may begin the growth's rounds without a spare on the seat, so it takes the seat first.
/// Its neighbors wait for what it publishes for that round.
Entered WorkerStart::join(const membership::SeatOffer& offer, const Recovery::ComeTo& come_to) {
  if (!members_->take()) return Entered::seat_taken;
  const std::optional<std::int64_t> round = members_->growth().wait_for(offer.growth);
  if (!round) return Entered::not_needed;
  note_republished(members_->map().most_republished());  // it may have waited for long
  recovery_.join(publisher_, offer, *round, come_to);
  announce_running();
  mpi::notify_launcher(mpi::LauncherNote::joined);
  if (worker_.options().log) {
    worker_.options().log(
        LogLevel::info,
        fmt::format("worker {}: joins in round {}; the workers are {} now", offer.seat,
                    worker_.progress.stats.rounds, worker_.setting.group.size()));
  }
  return Entered::trains;
}

/// The others read this spare's publications when it has taken the seat: it publishes before.
Entered WorkerStart::replace(const membership::SeatOffer& offer, const Recovery::ComeTo& come_to) {
  replaces_ = true;
  recovery_.take_seat(publisher_, offer, come_to);
  announce_running();
  if (!members_->take()) return Entered::seat_taken;
  mpi::notify_launcher(offer.is_unused() ? mpi::LauncherNote::joined
                                         : mpi::LauncherNote::took_seat);
  const WorkerStats& stats = worker_.progress.stats;
  worker_.warn(fmt::format(
      "worker {}: a spare has taken this seat in round {}; the worker before had made {} rounds",
      offer.seat, stats.rounds, stats.predecessor_rounds));
  return Entered::trains;
}

}  // namespace fast::worker
