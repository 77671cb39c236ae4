#include "exchange/shared/peer_waiter.hpp"

#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <thread>

namespace fast::exchange {
namespace {
constexpr auto recheck = std::chrono::milliseconds(10);
constexpr Seconds slow_notice{30};
}  // namespace

PeerWaiter::PeerWaiter(std::shared_ptr<Heartbeat> heartbeat, const ExchangeOptions& options)
    : heartbeat_(std::move(heartbeat)),
      options_(options),
      suspects_(static_cast<std::size_t>(heartbeat_->board()->workers())) {}

void PeerWaiter::log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

int PeerWaiter::named(int worker) const {
  return options_.number_of ? options_.number_of(worker) : worker;
}

void PeerWaiter::tell(PeerEvent::Kind kind, int worker, std::int64_t round) const {
  if (options_.observer) {
    options_.observer->on_peer({kind, own_name(), named(worker), round, Clock::now()});
  }
}

bool PeerWaiter::is_suspect(int worker, std::int64_t round) {
  const bool now = heartbeat_->is_suspect(worker);
  auto before = suspects_[static_cast<std::size_t>(worker)];
  if (now != before) {
    tell(now ? PeerEvent::Kind::suspected : PeerEvent::Kind::returned, worker, round);
  }
  if (now && !before) {
    log(LogLevel::warning,
        fmt::format("worker {}: worker {} has shown no sign of life for {:.1f} s; {} it",
                    own_name(), named(worker), heartbeat_->detector().silence(worker).count(),
                    options_.has_ended ? "waiting for" : "continuing without"));
  }
  if (before && !now) {
    log(LogLevel::info, fmt::format("worker {}: worker {} is back", own_name(), named(worker)));
  }
  before = now;
  return now;
}

PeerWaiter::Outcome PeerWaiter::check(int worker, std::string_view operation, std::int64_t round) {
  heartbeat_->board()->require_mirror(worker);
  const WorkerStatus status = state_of(heartbeat_->board()->header(worker)).status;
  // After this worker's own end, all-reduces alone wait: those of others go on as well.
  if (has_ended(status) && !has_ended(heartbeat_->own().status)) return Outcome::finished;
  if (status == WorkerStatus::failed) {
    fail(ErrorKind::peer_failed, "{}: worker {} stops in round {} because worker {} failed",
         operation, own_name(), round, named(worker));
  }
  if (options_.is_replaced && options_.is_replaced(worker)) return Outcome::suspect;
  const bool suspect = is_suspect(worker, round);
  const bool left_out = options_.has_ended ? options_.has_ended(worker) : suspect;
  return left_out ? Outcome::suspect : Outcome::ready;
}

/// Tells the observer of the wait.
PeerWaiter::Outcome PeerWaiter::wait_until(int worker, const std::function<bool()>& ready,
                                           std::string_view operation, std::int64_t round,
                                           Change awaited) {
  if (!options_.observer) return wait_longer(worker, ready, operation, round, awaited);
  PhaseEvent event{Phase::wait, own_name(), round, named(worker), Clock::now(), {}};
  const Outcome outcome = wait_longer(worker, ready, operation, round, awaited);
  event.ended = Clock::now();
  options_.observer->on_phase(event);
  return outcome;
}

PeerWaiter::Outcome PeerWaiter::wait_longer(int worker, const std::function<bool()>& ready,
                                            std::string_view operation, std::int64_t round,
                                            Change awaited) {
  WorkerHeader& header = heartbeat_->board()->header(worker);
  membership::ProgressDeadline deadline(options_.deadline, heartbeat_->own());
  Seconds notice = slow_notice;
  for (int attempts = 0;; ++attempts) {
    const std::uint32_t seen = header.signal.count.load(std::memory_order_seq_cst);
    const Outcome outcome = check(worker, operation, round);
    if (ready()) return Outcome::ready;
    if (outcome != Outcome::ready) return outcome;
    require(!options_.stop.stop_requested(), ErrorKind::peer_failed, "{}: worker {} has stopped",
            operation, own_name());
    const PeerState now = heartbeat_->own();
    if (deadline.expired(now)) {
      fail(ErrorKind::deadline,
           "{}: worker {} waited {:.1f} s for worker {} in round {} (it has finished {}), {:.1f} s "
           "without progress of any worker; find out what stops it, or set a longer deadline",
           operation, own_name(), deadline.waited(now).count(), named(worker), round,
           header.reading.progress.load(std::memory_order_relaxed),
           deadline.standstill(now).count());
    }
    check_wait();
    if (deadline.waited(now) > notice) {
      notice += slow_notice;
      log(LogLevel::info,
          fmt::format("worker {}: {} waits for slow worker {} in round {}, {:.0f} s so far",
                      own_name(), operation, named(worker), round, deadline.waited(now).count()));
    }
    if (attempts < 2) {
      std::this_thread::yield();
      continue;
    }
    header.wait_for_signal(seen, recheck, awaited);
  }
}

}  // namespace fast::exchange
