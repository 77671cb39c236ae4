#include "exchange/shared/peer_waiter.hpp"

#include <fast/core/error.hpp>
#include <thread>

namespace fast::exchange {
namespace {
constexpr auto recheck = std::chrono::milliseconds(10);
constexpr Seconds slow_notice{30};
}  // namespace

PeerWaiter::PeerWaiter(std::shared_ptr<Heart> heart, const ExchangeOptions& options)
    : heart_(std::move(heart)),
      options_(options),
      suspects_(static_cast<std::size_t>(heart_->board()->workers())) {}

void PeerWaiter::log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

/// With what other links know of progress.
PeerState PeerWaiter::own() const {
  PeerState own = heart_->own();
  if (options_.activity) own.activity += options_.activity();
  return own;
}

bool PeerWaiter::is_suspect(int worker) {
  const bool now = heart_->is_suspect(worker);
  auto before = suspects_[static_cast<std::size_t>(worker)];
  if (now && !before) {
    log(LogLevel::warning,
        fmt::format(
            "worker {}: worker {} has shown no sign of life for {:.1f} s; going on without it",
            heart_->rank(), worker, heart_->silence(worker).count()));
  }
  if (before && !now) {
    log(LogLevel::info, fmt::format("worker {}: worker {} is back", heart_->rank(), worker));
  }
  before = now;
  return now;
}

PeerWaiter::Outcome PeerWaiter::glance(int worker, std::string_view operation, std::int64_t round) {
  const WorkerStatus status = state_of(heart_->board()->header(worker)).status;
  if (status == WorkerStatus::finished) return Outcome::finished;
  if (status == WorkerStatus::failed) {
    fail(ErrorKind::peer_failed, "{}: worker {} stops in round {} because worker {} failed",
         operation, heart_->rank(), round, worker);
  }
  return is_suspect(worker) ? Outcome::suspect : Outcome::ready;
}

PeerWaiter::Outcome PeerWaiter::wait(int worker, const std::function<bool()>& ready,
                                     std::string_view operation, std::int64_t round) {
  if (ready()) return Outcome::ready;
  WorkerHeader& header = heart_->board()->header(worker);
  Patience patience(options_.deadline, own());
  Seconds notice = slow_notice;
  for (int round_trips = 0;; ++round_trips) {
    const std::uint32_t bell = header.bell.count.load(std::memory_order_seq_cst);
    const Outcome outcome = glance(worker, operation, round);
    if (ready()) return Outcome::ready;
    if (outcome != Outcome::ready) return outcome;
    require(!options_.stop.stop_requested(), ErrorKind::peer_failed, "{}: worker {} has stopped",
            operation, heart_->rank());
    const PeerState now = own();
    if (patience.is_over(now)) {
      fail(ErrorKind::deadline,
           "{}: worker {} waited {:.1f} s for worker {} in round {} (it has finished {}), {:.1f} s "
           "without progress of any worker; look for what holds it, or allow more with a longer "
           "deadline",
           operation, heart_->rank(), patience.waited(now).count(), worker, round,
           header.reading.progress.load(std::memory_order_relaxed),
           patience.standstill(now).count());
    }
    if (patience.waited(now) > notice) {
      notice += slow_notice;
      log(LogLevel::info,
          fmt::format("worker {}: {} waits for slow worker {} in round {}, {:.0f} s so far",
                      heart_->rank(), operation, worker, round, patience.waited(now).count()));
    }
    if (round_trips < 2) {
      std::this_thread::yield();
      continue;
    }
    header.await_ring(bell, recheck);
  }
}

}  // namespace fast::exchange
