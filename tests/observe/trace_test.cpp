#include <fast/observe/trace.hpp>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fstream>
#include <set>

#include "core/timeline_clock.hpp"
#include "observe/trace_files.hpp"
#include "observe/trace_packets.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using Catch::Matchers::Contains;
using observe::TrackEvent;

namespace {

const Clock::time_point zero = Clock::now();
Clock::time_point at_ms(int ms) { return zero + std::chrono::milliseconds(ms); }

PhaseEvent phase(Phase kind, int worker, int round, int from_ms, int to_ms, int peer = -1) {
  return {kind, worker, round, peer, at_ms(from_ms), at_ms(to_ms)};
}

MessageEvent published(int worker, std::uint64_t sequence, int at) {
  return {MessageEvent::Kind::published, worker, worker, sequence, 0, 0, true, at_ms(at)};
}

MessageEvent read(int worker, int from, std::uint64_t sequence, int at) {
  return {MessageEvent::Kind::read, worker, from, sequence, 0, 1, true, at_ms(at)};
}

std::vector<TrackEvent> of_type(const observe::TraceContent& content, int type) {
  std::vector<TrackEvent> found;
  for (const TrackEvent& event : content.events) {
    if (event.type == type) found.push_back(event);
  }
  return found;
}

std::string track_name(const observe::TraceContent& content, std::uint64_t uuid) {
  for (const observe::Track& track : content.tracks) {
    if (track.uuid == uuid) return track.name;
  }
  return "";
}

}  // namespace

TEST_CASE("phases are slices with the times and rounds that were told") {
  const testing::TemporaryDirectory directory;
  observe::trace(directory.path(), 3)->on_phase(phase(Phase::mix, 3, 7, 10, 25));
  const auto content = observe::read_traces(directory.path());
  const auto begins = of_type(content, observe::event_type::begin);
  const auto ends = of_type(content, observe::event_type::end);
  REQUIRE(begins.size() == 1);
  REQUIRE(ends.size() == 1);
  CHECK(begins[0].name == "mix");
  CHECK(begins[0].worker == 3);
  CHECK(begins[0].integers == std::vector<std::pair<std::string, std::int64_t>>{{"round", 7}});
  CHECK(ends[0].time_ns - begins[0].time_ns == 15'000'000);
  CHECK(ends[0].track == begins[0].track);
  CHECK(track_name(content, begins[0].track) == "rounds");
}

TEST_CASE("waits for single peers have a row of their own, scalars are counters") {
  const testing::TemporaryDirectory directory;
  {
    const auto trace = observe::trace(directory.path(), 0);
    trace->on_phase(phase(Phase::wait, 0, 1, 0, 9));
    trace->on_phase(phase(Phase::wait, 0, 1, 1, 8, 5));
    trace->on_scalar({"train/loss", 0.25, 0, 1, at_ms(9)});
  }
  const auto content = observe::read_traces(directory.path());
  const auto begins = of_type(content, observe::event_type::begin);
  REQUIRE(begins.size() == 2);
  CHECK(begins[0].track != begins[1].track);
  CHECK(begins[1].name == "worker 5");
  const auto numbers = of_type(content, observe::event_type::counter);
  REQUIRE(numbers.size() == 1);
  CHECK(numbers[0].number == 0.25);
  CHECK(track_name(content, numbers[0].track) == "train/loss");
}

TEST_CASE("only the wanted rounds are in the trace; peers and epochs always") {
  const testing::TemporaryDirectory directory;
  {
    const auto trace = observe::trace(directory.path(), 0, {.first_round = 5, .last_round = 6});
    for (int round = 0; round < 10; ++round) {
      trace->on_phase(phase(Phase::step, 0, round, round, round + 1));
    }
    trace->on_peer({PeerEvent::Kind::suspected, 0, 2, 9, at_ms(20)});
  }
  const auto content = observe::read_traces(directory.path());
  CHECK(of_type(content, observe::event_type::begin).size() == 2);
  REQUIRE(of_type(content, observe::event_type::instant).size() == 1);
  CHECK(of_type(content, observe::event_type::instant)[0].name == "suspected worker 2");
}

TEST_CASE("a long trace keeps its newest events, within its size, and can be read") {
  const testing::TemporaryDirectory directory;
  const std::size_t size = std::size_t{128} << 10U;
  const int rounds = 20'000;
  {
    const auto trace = observe::trace(directory.path(), 0, {.size_bytes = size});
    for (int round = 0; round < rounds; ++round) {
      trace->on_phase(phase(Phase::step, 0, round, round, round + 1));
    }
  }
  std::size_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory.path())) {
    bytes += file.file_size();
  }
  CHECK(bytes <= size);
  CHECK(bytes > size / 4);
  const auto content = observe::read_traces(directory.path());
  CHECK(content.cut == 0);
  const auto begins = of_type(content, observe::event_type::begin);
  CHECK(begins.back().integers[0].second == rounds - 1);
  for (std::size_t k = 1; k < begins.size(); ++k) {  // without a gap
    REQUIRE(begins[k].integers[0].second == begins[k - 1].integers[0].second + 1);
  }
}

TEST_CASE("a file that ends within an event is read up to there") {
  const testing::TemporaryDirectory directory;
  {
    const auto trace = observe::trace(directory.path(), 0);
    trace->on_phase(phase(Phase::step, 0, 0, 0, 1));
    trace->on_phase(phase(Phase::step, 0, 1, 1, 2));
  }
  const auto file = directory / "trace-0.0a.pftrace";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 3);
  const auto content = observe::read_traces(directory.path());
  CHECK(content.cut == 1);
  CHECK(of_type(content, observe::event_type::begin).size() == 2);
  CHECK(of_type(content, observe::event_type::end).size() == 1);
}

TEST_CASE("a merged trace has an arrow of its own for each read") {
  const testing::TemporaryDirectory directory;
  {
    const auto first = observe::trace(directory.path(), 0);
    const auto second = observe::trace(directory.path(), 1),
               third = observe::trace(directory.path(), 2);
    first->on_message(published(0, 1, 0));
    first->on_message(published(0, 2, 5));
    second->on_message(read(1, 0, 1, 2));
    second->on_message(read(1, 0, 2, 6));
    third->on_message(read(2, 0, 2, 7));
    third->on_message(read(2, 9, 4, 8));  // of a worker without a trace
  }
  const auto merged = observe::merge_traces({directory.path()}, directory / "all.pftrace");
  CHECK(merged.workers == 3);
  CHECK(merged.flows == 3);
  std::ifstream in(directory / "all.pftrace", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  observe::TraceContent content;
  REQUIRE(observe::read_trace(bytes, content));
  std::map<std::uint64_t, std::int64_t> begins;  // sequence, by flow
  std::set<std::uint64_t> ends;
  for (const TrackEvent& event : content.events) {
    for (const std::uint64_t flow : event.flows) {
      CHECK(begins.emplace(flow, event.integers.back().second).second);
    }
    if (event.last_flow == 0) continue;
    CHECK(ends.insert(event.last_flow).second);
    CHECK(begins.at(event.last_flow) == event.integers.back().second);
  }
  CHECK(begins.size() == 3);
  CHECK(ends.size() == 3);
}

namespace {

/// What a merged trace has of one event.
struct Shown {
  std::string process, name;
  double at_ms;  ///< since `zero`, by the clock of the first directory
  bool operator==(const Shown&) const = default;
};

struct Arrow {
  Shown from, to;
  bool operator==(const Arrow&) const = default;
};

/// Merges, and reads the arrows from the file, in the order of their ends.
std::vector<Arrow> arrows_of(const std::vector<std::filesystem::path>& directories,
                             std::vector<std::string> apart = {}) {
  const testing::TemporaryDirectory folder;
  const auto merged = observe::merge_traces(directories, folder / "all.pftrace");
  CHECK(merged.apart == apart);
  observe::TraceContent content;
  std::ifstream in(folder / "all.pftrace", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(observe::read_trace(bytes, content));
  std::map<int, std::string> processes;
  std::set<std::uint64_t> tracks;
  for (const observe::Track& track : content.tracks) {
    CHECK(tracks.insert(track.uuid).second);
    if (track.parent == 0) CHECK(processes.emplace(track.worker, track.name).second);
  }
  CHECK(static_cast<int>(processes.size()) == merged.workers);
  const auto zero_ns = static_cast<std::int64_t>(TimelineClock::of_process().at(zero).count());
  std::map<std::uint64_t, Shown> begins;
  std::vector<Arrow> arrows;
  for (const TrackEvent& event : content.events) {
    const double at_ms =
        std::round(static_cast<double>(static_cast<std::int64_t>(event.time_ns) - zero_ns) / 1e3) /
        1e3;
    const Shown shown{processes.at(event.worker), event.name, at_ms};
    for (const std::uint64_t flow : event.flows) CHECK(begins.emplace(flow, shown).second);
    if (event.last_flow != 0) arrows.push_back({begins.at(event.last_flow), shown});
  }
  CHECK(arrows.size() == merged.flows);
  return arrows;
}

SiteEvent joined(const std::string& site) { return {.site = site, .at = zero}; }

SiteEvent of_site(SiteEvent::Kind kind, const std::string& site, std::uint64_t incarnation,
                  std::int64_t exchange, int at) {
  return {.kind = kind,
          .site = site,
          .incarnation = incarnation,
          .exchange = exchange,
          .at = at_ms(at)};
}
constexpr auto site_published = SiteEvent::Kind::published, site_read = SiteEvent::Kind::read;

void tell_ahead(Observer& trace, const std::string& site, double ahead_s, int at) {
  trace.on_scalar({"site/of/" + site + "/clock_ahead_s", ahead_s, 0, 0, at_ms(at)});
}

}  // namespace

TEST_CASE("traces of sites are merged by one clock, with arrows between sites") {
  const testing::TemporaryDirectory oslo, rome, bonn;
  // Rome's clock is 2 s ahead of Oslo's, and Bonn's is 1 s behind Rome's.
  constexpr int rome_ms = 2000, bonn_ms = 1000;
  const bool by_rome = GENERATE(false, true);  // who has measured
  {
    const auto first = observe::trace(oslo.path(), 0), second = observe::trace(oslo.path(), 1),
               there = observe::trace(rome.path(), 0), beside = observe::trace(rome.path(), 1),
               far = observe::trace(bonn.path(), 0);
    for (const auto& one : {first, second}) one->on_site(joined("oslo"));
    for (const auto& one : {there, beside}) one->on_site(joined("rome"));
    far->on_site(joined("bonn"));
    first->on_site(of_site(site_published, "oslo", 7, 0, 10));
    first->on_site(of_site(site_published, "oslo", 7, 1, 20));
    there->on_site(of_site(site_published, "rome", 7, 1, rome_ms + 21));
    there->on_site(of_site(site_read, "oslo", 7, 1, rome_ms + 25));
    there->on_site(of_site(site_read, "oslo", 6, 1, rome_ms + 26));  // of a process without a trace
    there->on_site(of_site(site_read, "turin", 7, 1, rome_ms + 27));
    far->on_site(of_site(site_read, "rome", 7, 1, bonn_ms + 31));
    first->on_site(of_site(site_read, "rome", 7, 1, 32));
    // Within the sites, workers have the same numbers.
    first->on_message(published(0, 1, 40));
    there->on_message(published(0, 1, rome_ms + 41));
    second->on_message(read(1, 0, 1, 42));
    beside->on_message(read(1, 0, 1, rome_ms + 43));
    by_rome ? tell_ahead(*there, "oslo", -2, rome_ms + 30) : tell_ahead(*first, "rome", 2, 30);
    by_rome ? tell_ahead(*there, "bonn", -1, rome_ms + 30) : tell_ahead(*far, "rome", 1, bonn_ms);
  }
  const Shown from_oslo{"oslo worker 0", "published", 20},
      from_rome{"rome worker 0", "published", 21};
  const std::vector<Arrow> expected = {
      {from_oslo, {"rome worker 0", "read site oslo", 25}},
      {from_rome, {"bonn worker 0", "read site rome", 31}},
      {from_rome, {"oslo worker 0", "read site rome", 32}},
      {{"oslo worker 0", "published", 40}, {"oslo worker 1", "read worker 0", 42}},
      {{"rome worker 0", "published", 41}, {"rome worker 1", "read worker 0", 43}}};
  CHECK(arrows_of({oslo.path(), rome.path(), bonn.path()}) == expected);
  CHECK(arrows_of({oslo.path(), bonn.path(), rome.path()}) == expected);
}

TEST_CASE("a site's times follow the best measurements of its clock, and stay without one") {
  const testing::TemporaryDirectory oslo, rome;
  {
    const auto first = observe::trace(oslo.path(), 0), there = observe::trace(rome.path(), 0);
    first->on_site(joined("oslo"));
    there->on_site(joined("rome"));
    const int reads[] = {1050, 89'050, 200'000};
    for (int k = 0; k < 3; ++k) {
      first->on_site(of_site(site_published, "oslo", 7, k, 60'000 * k));
      there->on_site(of_site(site_read, "oslo", 7, k, reads[k]));
    }
  }
  const auto ends = [&](std::vector<std::string> apart) {
    std::vector<double> times;
    for (const Arrow& arrow : arrows_of({oslo.path(), rome.path()}, std::move(apart)))
      times.push_back(arrow.to.at_ms);
    return times;
  };
  CHECK(ends({"rome"}) == std::vector<double>{1050, 89'050, 200'000});
  {
    const auto there = observe::trace(rome.path(), 0);
    tell_ahead(*there, "oslo", -5, 31'050);  // within a minute of a later and better one
    tell_ahead(*there, "oslo", -1, 59'050);
    tell_ahead(*there, "oslo", -1.02, 119'050);
  }
  CHECK(ends({}) == std::vector<double>{50, 88'040, 198'980});
}

TEST_CASE("of two sites that have measured, the one with more readings counts") {
  const testing::TemporaryDirectory oslo, rome;
  const bool is_rome = GENERATE(false, true);  // who has measured all the time: a site's clock is
  {                                            // ahead by 2 s, or by 7 s in one bad reading
    const auto first = observe::trace(oslo.path(), 0), there = observe::trace(rome.path(), 0);
    first->on_site(joined("oslo"));
    there->on_site(joined("rome"));
    first->on_site(of_site(site_published, "oslo", 7, 0, 600'000));
    there->on_site(of_site(site_read, "oslo", 7, 0, 602'050));
    is_rome ? tell_ahead(*first, "rome", 7, 0) : tell_ahead(*there, "oslo", -7, 7000);
    for (int minute = 0; minute < 12; ++minute) {
      is_rome ? tell_ahead(*there, "oslo", -2, 2000 + 60'000 * minute)
              : tell_ahead(*first, "rome", 2, 60'000 * minute);
    }
  }
  const auto arrows = arrows_of({oslo.path(), rome.path()});
  REQUIRE(arrows.size() == 1);
  CHECK(arrows[0].to.at_ms == 600'050);
}

namespace {

/// The slices of a merged file, as pairs of times since `zero` in ms.
std::vector<std::pair<double, double>> slices_of(
    const std::vector<std::filesystem::path>& directories) {
  const testing::TemporaryDirectory folder;
  observe::merge_traces(directories, folder / "all.pftrace");
  std::ifstream in(folder / "all.pftrace", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  observe::TraceContent content;
  REQUIRE(observe::read_trace(bytes, content));
  const auto zero_ns = static_cast<std::int64_t>(TimelineClock::of_process().at(zero).count());
  const auto ms = [&](const TrackEvent& event) {
    return std::round(static_cast<double>(static_cast<std::int64_t>(event.time_ns) - zero_ns) /
                      1e6);
  };
  std::map<std::uint64_t, std::vector<double>> begins;  // by track, of those that have not ended
  std::vector<std::pair<double, double>> slices;
  for (const TrackEvent& event : content.events) {
    if (event.type == observe::event_type::begin) begins[event.track].push_back(ms(event));
    if (event.type != observe::event_type::end) continue;
    REQUIRE_FALSE(begins[event.track].empty());
    slices.emplace_back(begins[event.track].back(), ms(event));
    begins[event.track].pop_back();
  }
  return slices;
}

}  // namespace

TEST_CASE("a site that starts again with another clock has its times by each of both") {
  const testing::TemporaryDirectory oslo, rome;
  // Rome is 2 s ahead, and 32 s after its second start, which has its first reading late.
  observe::trace(oslo.path(), 0)->on_site(joined("oslo"));
  {
    const auto there = observe::trace(rome.path(), 0);
    there->on_site(joined("rome"));
    there->on_phase(phase(Phase::step, 0, 0, 2000, 3000));
    for (const int at : {10'000, 50'000}) tell_ahead(*there, "oslo", -2, 2000 + at);
    there->on_phase(phase(Phase::step, 0, 1, 62'000, 63'000));
  }
  {
    const auto there = observe::trace(rome.path(), 0);
    there->on_site(joined("rome"));
    there->on_phase(phase(Phase::step, 0, 2, 32'000 + 70'000, 32'000 + 71'000));
    tell_ahead(*there, "oslo", -32, 32'000 + 100'000);
  }
  using Slices = std::vector<std::pair<double, double>>;
  CHECK(slices_of({oslo.path(), rome.path()}) ==
        Slices{{0, 1000}, {60'000, 61'000}, {70'000, 71'000}});
}

TEST_CASE("slices do not end before they begin where another site's clock has stepped") {
  const testing::TemporaryDirectory oslo, rome;
  // Oslo starts again, with a clock that is 30 s less: Rome is 2 s ahead, then 32 s. One minute
  // and several minutes lie between the readings.
  const int second = GENERATE(110'000, 700'000);
  observe::trace(oslo.path(), 0)->on_site(joined("oslo"));
  {
    const auto there = observe::trace(rome.path(), 0);
    there->on_site(joined("rome"));
    const int middle = (50'000 + second) / 2;
    there->on_phase(phase(Phase::step, 0, 0, 40'000, 41'000));
    there->on_phase(phase(Phase::step, 0, 1, middle - 500, middle + 500));
    there->on_phase(phase(Phase::step, 0, 2, second - 1000, second));
    tell_ahead(*there, "oslo", -2, 50'000);
    tell_ahead(*there, "oslo", -32, second);
  }
  for (const auto& [begin, end] : slices_of({oslo.path(), rome.path()})) {
    CHECK(begin <= end);
    CHECK(end <= begin + 1000);
  }
  using Slices = std::vector<std::pair<double, double>>;
  const auto slices = slices_of({oslo.path(), rome.path()});
  CHECK(std::ranges::count(slices, Slices::value_type(38'000, 39'000)) == 1);
  CHECK(std::ranges::count(slices, Slices::value_type(second - 33'000, second - 32'000)) == 1);
}

TEST_CASE("a summary adds up phases and waits, and follows waits to their cause") {
  const testing::TemporaryDirectory directory;
  {
    const auto first = observe::trace(directory.path(), 0);
    const auto second = observe::trace(directory.path(), 1),
               third = observe::trace(directory.path(), 2);
    // Round 0: worker 0 waits for 1, which waits for 2, which computes for 100 ms.
    first->on_phase(phase(Phase::step, 0, 0, 0, 10));
    first->on_phase(phase(Phase::wait, 0, 0, 10, 105));
    first->on_phase(phase(Phase::wait, 0, 0, 11, 105, 1));
    second->on_phase(phase(Phase::step, 1, 0, 0, 10));
    second->on_phase(phase(Phase::wait, 1, 0, 10, 104));
    second->on_phase(phase(Phase::wait, 1, 0, 11, 104, 2));
    third->on_phase(phase(Phase::step, 2, 0, 0, 100));
    third->on_peer({PeerEvent::Kind::returned, 2, 1, 0, at_ms(101)});
    for (int round = 1; round < 40; ++round) {
      first->on_phase(phase(Phase::step, 0, round, 200 + round, 201 + round));
    }
  }
  const auto summary = observe::summarize_traces(directory.path());
  REQUIRE(summary.workers.size() == 3);
  CHECK(summary.workers.at(0).rounds == 40);
  CHECK(summary.workers.at(0).phases_s.at("wait") == Approx(.095));
  CHECK(summary.workers.at(0).waits_s.at(1) == Approx(.094));
  CHECK(summary.workers.at(2).phases_s.at("step") == Approx(.1));
  CHECK(summary.slowest_rounds == 1);
  REQUIRE(summary.causes.size() == 1);
  CHECK(summary.causes[0] == std::pair<std::string, int>("worker 2: step", 1));
  REQUIRE(summary.events.size() == 1);
  CHECK(summary.events[0].second == "worker 2: returned worker 1");
  CHECK(summary.events[0].first == Approx(.101));
  CHECK_THAT(observe::to_text(summary),
             Contains("worker 2: step") && Contains("worker 1 (0.09 s)"));
}

TEST_CASE("bad requests have one clear error") {
  const testing::TemporaryDirectory directory;
  CHECK_THROWS_WITH(observe::read_traces(directory.path()), Contains("train with --trace"));
  CHECK_THROWS_WITH(observe::read_traces(directory / "none"), Contains("cannot be read"));
  CHECK_THROWS_WITH(observe::trace(directory.path(), 0, {.size_bytes = 10}),
                    Contains("at least 65536 are required"));
  CHECK_THROWS_WITH(observe::trace(directory.path(), 0, {.first_round = 2, .last_round = 1}),
                    Contains("rounds from 2 to 1"));
  const testing::TemporaryDirectory alone;
  observe::trace(alone.path(), 0);
  CHECK_THROWS_WITH(observe::merge_traces({alone.path(), alone.path()}, alone / "all.pftrace"),
                    Contains("names no site"));
  const testing::TemporaryDirectory oslo, again;
  for (const auto& path : {oslo.path(), again.path()})
    observe::trace(path, 0)->on_site(joined("oslo"));
  CHECK_THROWS_WITH(observe::merge_traces({oslo.path(), again.path()}, alone / "all.pftrace"),
                    Contains("two directories are of site oslo; give each site once"));
  CHECK_THROWS_WITH(observe::merge_traces({}, alone / "all.pftrace"), Contains("no directory"));
  CHECK_FALSE(std::filesystem::exists(alone / "all.pftrace"));
  std::ofstream(directory / "trace-0.0a.pftrace") << "this is text, no trace at all";
  CHECK_THROWS_AS(observe::read_traces(directory.path()), Error);
}
