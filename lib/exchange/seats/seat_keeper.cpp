#include "exchange/seats/seat_keeper.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/wait_check.hpp>
#include <fast/mpi/environment.hpp>
#include <limits>
#include <thread>

namespace fast::exchange {
namespace {

constexpr auto look_again = std::chrono::milliseconds(100);
/// Within these times news reach all ranks.
constexpr double news_on_a_host_s = 0.02, news_between_hosts_s = 1;
constexpr Seconds longest_news_of_end{10};

}  // namespace

SeatKeeper::SeatKeeper(Group everyone, int seats, const Deadline& deadline)
    : everyone_(std::move(everyone)),
      region_(everyone_.allocate(sizeof(SeatRecord), deadline)),
      news_(everyone_, SeatRecord::words, deadline),
      table_(SeatRecords(records(), everyone_.rank()), seats),
      seating_(table_, std::numeric_limits<double>::infinity(),
               news_.has_other_hosts() ? news_between_hosts_s : news_on_a_host_s),
      ticker_([this](Seconds elapsed) { return tick(elapsed); }) {}

/// The memory is zero at first, and so are valid records.
std::vector<SeatRecord*> SeatKeeper::records() const {
  std::vector<SeatRecord*> all;
  for (std::byte* part : region_.parts) all.push_back(reinterpret_cast<SeatRecord*>(part));
  return all;
}

/// True while seats change hands.
bool SeatKeeper::tick(Seconds elapsed) {
  receive_news();
  const std::vector<int> died = everyone_.died();
  bool hurry = false;
  {
    const std::lock_guard lock(mutex_);
    seating_.tick(elapsed.count(), died);
    growth_.tick();
    table_.records().copy_to(news_.words());
    hurry = seating_.is_busy() || growth_.is_busy() || awaits_end_;
  }
  changed_.notify_all();
  news_.send();
  return hurry;
}

void SeatKeeper::receive_news() {
  while (news_.receive()) {
    const std::lock_guard lock(mutex_);
    table_.records().take_over(news_.words(), news_.here());
  }
}

void SeatKeeper::spread_news() const {
  if (news_.has_other_hosts()) std::this_thread::sleep_for(Seconds(news_between_hosts_s));
}

void SeatKeeper::await_end() {
  const Deadline limit(longest_news_of_end);
  std::unique_lock lock(mutex_);
  awaits_end_ = true;
  while (!seating_.all_have_ended() && !limit.expired()) {
    check_wait(lock);
    changed_.wait_for(lock, look_again);
  }
  awaits_end_ = false;
}

void SeatKeeper::watch(Seconds silent_after, std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  table_.set_steps(steps);
  const double news_s = news_.has_other_hosts() ? news_between_hosts_s : 0;
  seating_.signs().set_silent_after(silent_after.count() + news_s);
}

void SeatKeeper::note_status(WorkerStatus status) { table_.records().set_status(status); }

void SeatKeeper::note_progress(std::int64_t combinations) {
  table_.records().set_progress(combinations);
}

std::uint64_t SeatKeeper::repeated() const {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < table_.records().size(); ++rank)
    sum += table_.records().work_of(rank).repeated;
  return sum;
}

bool SeatKeeper::is_awaited(int seat) const {
  const std::lock_guard lock(mutex_);
  return seating_.is_awaited(seat);
}

int SeatKeeper::number_of(int rank) const {
  const auto seat = rank == table_.rank() ? table_.own_seat() : table_.seat_of(rank);
  return seat.value_or(rank);
}

bool SeatKeeper::has_begun(int rank) const {
  const SeatRecords& records = table_.records();
  return table_.takes_part(rank) &&
         (!table_.is_spare(rank) || records.status(rank) != WorkerStatus::starting);
}

std::vector<int> SeatKeeper::joined() const {
  std::vector<int> seats;
  const int growths = std::max(table_.entered(), table_.begun_growths());
  for (int seat = table_.founders(); seat < table_.founders() + growths; ++seat)
    seats.push_back(seat);
  return seats;
}

bool SeatKeeper::some_are_missing() const {
  const std::lock_guard lock(mutex_);
  return seating_.signs().any_is_lost() || !table_.taken().empty() || !joined().empty();
}

std::optional<SeatOffer> SeatKeeper::wait_for_seat(const std::function<void()>& began) {
  std::unique_lock lock(mutex_);
  for (bool told = false;;) {
    if (!told && (told = table_.has_begun())) began();
    if (const auto offer = seating_.offered()) {
      seating_.accept();
      return offer;
    }
    require_nobody_failed(table_);
    if (seating_.all_have_ended()) break;
    if (mpi::asked_to_leave()) {
      seating_.release();
      return std::nullopt;
    }
    check_wait(lock);
    changed_.wait_for(lock, look_again);
  }
  seating_.release();
  table_.records().set_status(WorkerStatus::finished);
  const SeatRecords& records = table_.records();
  bool any_finished = false;
  for (int seat = 0; seat < table_.founders(); ++seat)
    any_finished |= records.status(table_.holder(seat)) == WorkerStatus::finished;
  require(any_finished, ErrorKind::deadline,
          "Worker: spare {} can take no seat, as all workers are gone; resume from a checkpoint",
          table_.rank());
  return std::nullopt;
}

bool SeatKeeper::take() {
  const std::lock_guard lock(mutex_);
  return seating_.take();
}

void SeatKeeper::release() {
  const std::lock_guard lock(mutex_);
  seating_.release();
}

}  // namespace fast::exchange
