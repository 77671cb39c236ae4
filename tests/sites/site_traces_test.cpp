#include <fast/observe/trace.hpp>

#include <fstream>
#include <map>

#include "observe/trace_files.hpp"
#include "running_sites.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("traces of two sites have an arrow to each read, from the publication of its number") {
  const auto hub = std::make_shared<MemoryHub>();
  constexpr int exchanges = 5;
  const TemporaryDirectory folders[2];
  std::int64_t reads[2] = {};
  run_sites(2, [&](int me) {
    WorkerOptions options;
    options.algorithm = algorithm::none();
    options.site = site_on(hub, options_of(me, 2));
    options.observer = observe::trace(folders[me].path(), 0);
    std::vector<double> x{1, 2, 3};
    Worker worker(local::make_groups(1)[0], stencil::ring(), {view_of("x", std::span(x))}, options);
    for (int t = 0; t < exchanges * steps_between; ++t) worker.step([] {});
    worker.finish();
    reads[me] = sites::stats_of(*options.site).reads;
  });
  REQUIRE(reads[0] + reads[1] >= 2 * (exchanges - 1));
  const auto file = folders[0] / "all.pftrace";
  const auto merged = observe::merge_traces({folders[0].path(), folders[1].path()}, file);
  CHECK(merged.apart.empty());
  CHECK(merged.workers == 2);
  std::ifstream in(file, std::ios::binary);
  observe::TraceContent content;
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(observe::read_trace(bytes, content));
  std::map<int, std::string> processes;
  for (const observe::Track& track : content.tracks)
    if (track.parent == 0) processes[track.worker] = track.name;
  CHECK(processes == std::map<int, std::string>{{0, "a worker 0"}, {1, "b worker 0"}});
  std::map<std::uint64_t, const observe::TrackEvent*> begins;
  std::int64_t arrows = 0;
  for (const observe::TrackEvent& event : content.events) {
    for (const std::uint64_t flow : event.flows) begins[flow] = &event;
    if (event.last_flow == 0) continue;
    ++arrows;
    const observe::TrackEvent& from = *begins.at(event.last_flow);
    CHECK(from.worker != event.worker);
    CHECK(from.name == "published");
    CHECK(event.name == (event.worker == 0 ? "read site b" : "read site a"));
    for (const std::size_t k : {1U, 2U}) {  // exchange, incarnation
      CHECK(from.integers[k] == event.integers[k]);
      CHECK(from.integers[k].second >= 0);
    }
  }
  CHECK(arrows == reads[0] + reads[1]);
}
