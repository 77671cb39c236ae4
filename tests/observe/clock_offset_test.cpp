#include "observe/clock_offset.hpp"

#include <fmt/core.h>

#include <cmath>
#include <fast/exchange/local.hpp>
#include <fast/observe/trace.hpp>

#include "observe/trace_files.hpp"
#include "observe/trace_packets.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace std::chrono_literals;
using observe::TrackEvent;

namespace {

constexpr std::uint64_t process = std::uint64_t{1} << 32U, clock_track = process + 1,
                        other_track = process + 2;

TrackEvent offset_at(std::uint64_t time_ns, double offset_s) {
  TrackEvent event;
  event.type = observe::event_type::counter;
  event.track = clock_track;
  event.time_ns = time_ns;
  event.number = offset_s;
  return event;
}

TrackEvent instant_at(std::uint64_t time_ns) {
  TrackEvent event;
  event.type = observe::event_type::instant;
  event.track = other_track;
  event.time_ns = time_ns;
  return event;
}

/// Times of what is left after align().
std::vector<std::uint64_t> aligned(std::vector<TrackEvent> events) {
  observe::TraceContent content;
  content.tracks = {{clock_track, process, observe::clock_offset_name, true, 0},
                    {other_track, process, "events", false, 0}};
  content.events = std::move(events);
  observe::align(content);
  CHECK(content.tracks.size() == 1);
  std::vector<std::uint64_t> times;
  for (const TrackEvent& event : content.events) times.push_back(event.time_ns);
  return times;
}

}  // namespace

TEST_CASE("the offset of each clock from the first one is measured") {
  for (const int workers : {1, 2, 5}) {
    local::run(workers, [](const Group& group) {
      const int rank = group.rank();
      const auto late = [rank] { return observe::timeline_now() + rank * 7s; };
      const Seconds offset = observe::clock_offset(group, Deadline(Seconds(60)), late);
      testing::expect(std::abs(offset.count() - 7 * rank) < 0.5,
                      fmt::format("worker {}: {} s", rank, offset.count()));
    });
  }
}

TEST_CASE("times move by the line through the first and the last offset") {
  // A clock that is 2 s ahead at 100 s, and 3 s at 200 s. Outside of these, the nearer one holds.
  const std::uint64_t s = 1'000'000'000;
  CHECK(aligned({instant_at(90 * s), offset_at(100 * s, 2), instant_at(100 * s),
                 instant_at(150 * s), offset_at(200 * s, 3), instant_at(250 * s)}) ==
        std::vector<std::uint64_t>{88 * s, 98 * s, 147 * s + s / 2, 247 * s});
}

TEST_CASE("a clock that is behind, and one offset only") {
  CHECK(aligned({offset_at(50, -1e-8), instant_at(40), instant_at(70)}) ==
        std::vector<std::uint64_t>{50, 80});
}

TEST_CASE("offsets stay when the ring of a timeline has turned") {
  const testing::TemporaryDirectory directory;
  {
    observe::TraceOptions options;
    options.size_bytes = std::size_t{64} << 10U;
    const auto trace = observe::trace(directory.path(), 0, options);
    trace->on_scalar({observe::clock_offset_name, 1000, 0, 0, Clock::now()});
    for (int round = 0; round < 5000; ++round)
      trace->on_scalar({"train/loss", 1, 0, round, Clock::now()});
  }
  const auto before = static_cast<std::uint64_t>((observe::timeline_now() - 900s).count());
  const auto content = observe::read_traces(directory.path());
  REQUIRE_FALSE(content.events.empty());
  CHECK(content.events.back().time_ns < before);
}
