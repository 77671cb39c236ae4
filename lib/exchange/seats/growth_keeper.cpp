#include "exchange/seats/growth_keeper.hpp"

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/wait_check.hpp>
#include <fast/mpi/environment.hpp>

namespace fast::exchange {
namespace {

constexpr auto look_at_growth_again = std::chrono::milliseconds(100);
constexpr Seconds longest_news{10};

}  // namespace

void require_nobody_failed(const SeatTable& table) {
  const SeatRecords& records = table.records();
  for (int rank = 0; rank < records.size(); ++rank) {
    require(records.status(rank) != WorkerStatus::failed, ErrorKind::peer_failed,
            "Worker: spare {} ends as a worker failed", table.rank());
  }
}

void GrowthKeeper::allow(const GrowthRounds& rounds) {
  const std::lock_guard lock(mutex_);
  growth_.allow(rounds);
}

bool GrowthKeeper::is_allowed() const {
  const std::lock_guard lock(mutex_);
  return growth_.is_allowed();
}

void GrowthKeeper::request() {
  const std::lock_guard lock(mutex_);
  growth_.request();
}

int GrowthKeeper::spares_left() const {
  const std::lock_guard lock(mutex_);
  return seating_.spares_left();
}

int GrowthKeeper::wanted() const {
  return static_cast<int>(std::max(seating_.table().records().newest_wanted(),
                                   seating_.table().records().newest_settled().number));
}

GrowthTurn GrowthKeeper::take_turn(std::int64_t rounds, std::int64_t ahead, Seconds deadline) {
  const Deadline limit(deadline);
  std::unique_lock lock(mutex_);
  for (;;) {
    const GrowthTurn turn = growth_.take_turn(rounds, ahead);
    if (turn != GrowthTurn::hold || !seating_.table().has_seat()) return turn;
    require(!limit.expired(), ErrorKind::deadline,
            "Worker: worker {} waited {:.1f} s in round {} for the others to agree when a worker "
            "joins; look for one that hangs",
            seating_.table().own_seat().value_or(seating_.table().rank()), limit.elapsed_s(),
            rounds);
    check_wait(lock);
    changed_.wait_for(lock, look_at_growth_again);
  }
}

std::optional<NumberedGrowth> GrowthKeeper::coming() const {
  const std::lock_guard lock(mutex_);
  return growth_.coming();
}

void GrowthKeeper::enter() {
  const std::lock_guard lock(mutex_);
  growth_.enter();
}

std::optional<std::int64_t> GrowthKeeper::entered_in() const {
  const std::lock_guard lock(mutex_);
  return growth_.entered_in();
}

void GrowthKeeper::begin(std::int64_t rounds) {
  const Deadline limit(longest_news);
  std::unique_lock lock(mutex_);
  while (!growth_.begin(rounds) && !limit.expired()) {
    check_wait(lock);
    changed_.wait_for(lock, look_at_growth_again);
  }
}

std::optional<std::int64_t> GrowthKeeper::wait_for(int number) {
  std::unique_lock lock(mutex_);
  while (seating_.table().begun_growths() < number) {
    require_nobody_failed(seating_.table());
    if (seating_.all_have_ended() || mpi::asked_to_leave()) {
      seating_.table().records().set_status(WorkerStatus::finished);  // first: it is not lost
      seating_.release();
      seating_.table().enter(seating_.table().begun_growths());
      return std::nullopt;
    }
    check_wait(lock);
    changed_.wait_for(lock, look_at_growth_again);
  }
  const NumberedGrowth settled = seating_.table().records().newest_settled();
  // The rounds of earlier growths are not known any more.
  return settled.number == static_cast<std::uint64_t>(number) ? settled.round : -1;
}

}  // namespace fast::exchange
