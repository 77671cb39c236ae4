#include "observe/clock_offset.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace fast::observe {

namespace {

constexpr int exchanges = 32;
constexpr auto pause = std::chrono::microseconds(500);
constexpr char purpose[] = "measuring clocks";

std::string bytes_of(std::span<const std::int64_t> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

std::int64_t number_in(const std::string& bytes, std::size_t index) {
  std::int64_t number = 0;
  std::memcpy(&number, bytes.data() + index * sizeof number, sizeof number);
  return number;
}

/// By worker: the least time, on the two clocks, from its reading to this worker's next one.
/// Everybody's readings arrive when the last one does, so worker 0 and the others are late in turn.
std::vector<std::int64_t> shortest_ways(const Group& group, const Deadline& deadline,
                                        const WallClock& now) {
  std::vector<std::int64_t> shortest(static_cast<std::size_t>(group.size()),
                                     std::numeric_limits<std::int64_t>::max());
  for (int exchange = 0; exchange < exchanges; ++exchange) {
    if ((exchange % 2 == 0) == (group.rank() == 0)) std::this_thread::sleep_for(pause);
    const std::int64_t sent = now().count();
    const auto all = group.all_gather(bytes_of({&sent, 1}), deadline, purpose);
    const std::int64_t received = now().count();
    for (std::size_t worker = 0; worker < all.size(); ++worker)
      shortest[worker] = std::min(shortest[worker], received - number_in(all[worker], 0));
  }
  return shortest;
}

}  // namespace

std::chrono::nanoseconds timeline_now() { return TimelineClock::of_process().at(Clock::now()); }

Seconds clock_offset(const Group& group, const Deadline& deadline, const WallClock& now) {
  const std::vector<std::int64_t> shortest = shortest_ways(group, deadline, now);
  const auto all = group.all_gather(bytes_of(shortest), deadline, purpose);
  const auto own = static_cast<std::size_t>(group.rank());
  const std::int64_t there = shortest[0], back = number_in(all[0], own);
  return std::chrono::nanoseconds((there - back) / 2);
}

}  // namespace fast::observe
