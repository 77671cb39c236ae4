#include "membership/members.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/mpi/environment.hpp>
#include <limits>
#include <utility>

namespace fast::membership {
namespace {

/// Claims are made within this time at least, also when no news go to other hosts.
constexpr double news_on_a_host_s = 0.02;
constexpr Seconds longest_news_of_end{10};

}  // namespace

Members::Members(std::shared_ptr<Coordinator> coordinator, int founders)
    : coordinator_(std::move(coordinator)),
      map_(coordinator_->board(), founders),
      seating_(map_, coordinator_->liveness(), std::numeric_limits<double>::infinity(),
               std::max(news_on_a_host_s, coordinator_->news().count())),
      growth_(*coordinator_, seating_) {
  coordinator_->add(*this);
}

Members::~Members() { coordinator_->remove(*this); }

void Members::advance() {
  seating_.tick();
  growth_.advance();
}

/// True while seats change hands.
bool Members::is_busy() const { return seating_.is_busy() || growth_.is_busy() || awaits_end_; }

void Members::await_end() {
  const Deadline limit(longest_news_of_end);
  auto lock = coordinator_->lock();
  awaits_end_ = true;
  while (!seating_.all_have_ended() && !limit.expired()) coordinator_->wait(lock);
  awaits_end_ = false;
}

void Members::watch(Seconds silent_after, std::int64_t steps, std::int64_t times) {
  const auto lock = coordinator_->lock();
  map_.set_pace(steps, times);
  seating_.set_silent_after((silent_after + coordinator_->news()).count());
}

std::uint64_t Members::repeated() const {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < map_.records().size(); ++rank)
    sum += map_.records().work_of(rank).repeated;
  return sum;
}

bool Members::is_awaited(int seat) const {
  const auto lock = coordinator_->lock();
  return seating_.is_awaited(seat);
}

bool Members::some_are_missing() const {
  const auto lock = coordinator_->lock();
  return seating_.any_is_lost() || !map_.taken().empty() || !map_.joined().empty();
}

std::optional<SeatOffer> Members::wait_for_seat(const std::function<void()>& began) {
  auto lock = coordinator_->lock();
  for (bool told = false;;) {
    if (!told && (told = map_.has_begun())) began();
    if (const auto offer = seating_.offered()) {
      seating_.accept();
      return offer;
    }
    require_nobody_failed(map_);
    if (seating_.all_have_ended()) break;
    if (mpi::asked_to_leave()) {
      seating_.release();
      return std::nullopt;
    }
    coordinator_->wait(lock);
  }
  end_unneeded();
  return std::nullopt;
}

/// Throws Error(deadline) if no worker has finished.
void Members::end_unneeded() {
  seating_.release();
  map_.records().set_status(WorkerStatus::finished);
  bool any_finished = false;
  for (int seat = 0; seat < map_.founders(); ++seat)
    any_finished |= map_.records().status(map_.holder(seat)) == WorkerStatus::finished;
  require(any_finished, ErrorKind::deadline,
          "Worker: spare {} can take no seat, as all workers are gone; resume from a checkpoint",
          map_.rank());
}

bool Members::take() {
  const auto lock = coordinator_->lock();
  return seating_.take();
}

void Members::release() {
  const auto lock = coordinator_->lock();
  seating_.release();
}

}  // namespace fast::membership
