#include <fast/core/error.hpp>

#include "fast_report/run.hpp"
#include "fast_report/time_use.hpp"
#include "run_directory.hpp"
#include "support/catch.hpp"

using fast_report::read_json_lines;
using fast_report::read_run;
using fast_report::Run;
using nlohmann::json;
using report_test::MadeRun;
using report_test::RunDirectory;

namespace {

bool has_fault(const Run& run, const std::string& text) {
  for (const std::string& fault : run.faults) {
    if (fault.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a cut last line and lines that are no objects are counted, the others are read") {
  RunDirectory directory;
  directory.write("metrics/0.jsonl", "{\"a\":1}\n\n[1]\nnothing\n{\"b\":null}\n{\"c\":");
  const auto lines = read_json_lines(directory.path() / "metrics/0.jsonl");
  REQUIRE(lines.objects == std::vector<json>{{{"a", 1}}, {{"b", nullptr}}});
  REQUIRE(lines.unreadable == 2);
  REQUIRE(lines.cut);
}

TEST_CASE("a last line without its newline is read when it is whole") {
  RunDirectory directory;
  directory.write("metrics/0.jsonl", "{\"a\":1}");
  const auto lines = read_json_lines(directory.path() / "metrics/0.jsonl");
  REQUIRE(lines.objects.size() == 1);
  REQUIRE_FALSE(lines.cut);
}

TEST_CASE("members of a wrong type, null and numbers that do not fit are absent") {
  const fast_report::Fields fields(json{{"text", "x"},
                                        {"none", nullptr},
                                        {"half", 0.5},
                                        {"large", 1e300},
                                        {"rank", -1},
                                        {"list", {1, "2", -3, 4}}});
  REQUIRE_FALSE(fields.number("text"));
  REQUIRE_FALSE(fields.number("none"));
  REQUIRE_FALSE(fields.integer("half"));
  REQUIRE_FALSE(fields.integer("large"));
  REQUIRE_FALSE(fields.rank("rank"));
  REQUIRE(fields.ranks("list") == std::vector<int>{1, 4});
  REQUIRE(*fields.number("half") == 0.5);
  REQUIRE(*fields.text("half") == "0.5");
}

TEST_CASE("a directory that is no run is refused, and the message says what to give") {
  RunDirectory directory;
  std::filesystem::remove(directory.path() / "metrics");
  REQUIRE_THROWS_WITH(read_run(directory.path()), ContainsSubstring("fast-train --out"));
  REQUIRE_THROWS_WITH(read_run(directory.path() / "nowhere"), ContainsSubstring("nowhere"));
  directory.write("metrics.jsonl", "\n");
  REQUIRE_THROWS_WITH(read_run(directory.path()), ContainsSubstring("no line that can be read"));
}

TEST_CASE("what is missing in a run is said, and the rest is read") {
  RunDirectory directory;
  directory.line(0, {{"kind", "start"}, {"time", 10}, {"seconds", 0}, {"workers", 6}});
  directory.write("metrics/1.jsonl", "");
  directory.write("metrics/2.jsonl", "{\"kind\":\"start\"}\n{\"kind\":\"epo");
  const Run run = read_run(directory.path());
  REQUIRE(run.size == 6);
  REQUIRE(run.workers.size() == 2);
  REQUIRE(run.missing == std::vector<int>{1, 3, 4, 5});
  REQUIRE(has_fault(run, "4 of 6 workers: 1, 3-5."));
  REQUIRE(has_fault(run, "metrics/1.jsonl is empty"));
  REQUIRE(has_fault(run, "metrics/2.jsonl is cut"));
  REQUIRE(has_fault(run, "no config.toml"));
}

TEST_CASE("workers that joined a run are counted") {
  RunDirectory directory;
  for (const int rank : {0, 1}) directory.line(rank, {{"kind", "start"}, {"workers", 2}});
  directory.line(2, {{"kind", "start"}, {"workers", 3}});
  const Run run = read_run(directory.path());
  REQUIRE(run.size == 3);
  REQUIRE(run.missing.empty());
}

TEST_CASE("metrics.jsonl gives the workers that have no file of their own") {
  RunDirectory directory;
  directory.line(0, {{"kind", "start"}, {"rank", 0}, {"workers", 2}});
  directory.write("metrics.jsonl",
                  "{\"kind\":\"start\",\"rank\":0}\n{\"kind\":\"end\",\"rank\":0}\n"
                  "{\"kind\":\"start\",\"rank\":1}\n{\"kind\":\"end\",\"rank\":1}\n");
  const Run run = read_run(directory.path());
  REQUIRE(run.missing.empty());
  REQUIRE_FALSE(run.workers.at(0).parts.at(0).end);
  REQUIRE(run.workers.at(1).parts.at(0).end);
}

TEST_CASE("the options are those of the newest configuration file") {
  RunDirectory directory;
  directory.line(0, {{"kind", "start"}, {"workers", 1}});
  directory.write("config.toml", "lr = 0.1\n");
  directory.write("config-2.toml",
                  "# fast-train 1\n# on host\n# Options of x\nlr = 0.2\nname = [\"a\", \"b\"]\n");
  directory.write("config-x.toml", "lr = 0.3\n");
  const Run run = read_run(directory.path());
  REQUIRE(*run.option("lr") == "0.2");
  REQUIRE(*run.option("name") == "a, b");
  REQUIRE(run.remarks == std::vector<std::string>{"fast-train 1", "on host"});
  REQUIRE(run.faults.empty());
}

TEST_CASE("a configuration file that is no TOML costs the options only") {
  RunDirectory directory;
  directory.line(0, {{"kind", "start"}, {"workers", 1}});
  directory.write("config.toml", "= 3\n");
  const Run run = read_run(directory.path());
  REQUIRE(run.options.empty());
  REQUIRE(has_fault(run, "options cannot be read"));
}

TEST_CASE("a part that resumed follows the one before, without the time between them") {
  MadeRun made(2);
  for (const int rank : {0, 1}) {
    made.line(rank, "start", 0).line(rank, "epoch", 10 + rank, {{"epoch", 1}});
    fast_report::take_line(
        made.run.workers.at(rank),
        {{"kind", "start"}, {"time", 5000}, {"seconds", 0}, {"resumed_step", 100}});
    fast_report::take_line(made.run.workers.at(rank),
                           {{"kind", "epoch"}, {"time", 5004}, {"seconds", 4}});
  }
  const Run& run = made.done();
  REQUIRE(fast_report::parts_of(run.workers) == 2);
  const auto& parts = run.workers.at(0).parts;
  REQUIRE(parts.at(1).number == 1);
  REQUIRE(parts.at(0).at(10) == Approx(10));
  REQUIRE(parts.at(1).at(4) == Approx(15));  // worker 1 ended the first part at 11
}

TEST_CASE("a worker that came with the second part belongs to it") {
  MadeRun made(2);
  made.line(0, "start", 0).line(0, "epoch", 10);
  for (const int rank : {0, 1}) {
    fast_report::take_line(
        made.run.workers.at(rank),
        {{"kind", "start"}, {"time", 5000}, {"seconds", 0}, {"resumed_step", 7}});
  }
  const Run& run = made.done();
  REQUIRE(run.workers.at(1).parts.at(0).number == 1);
  REQUIRE(run.workers.at(1).parts.at(0).offset_s == Approx(10));
}

TEST_CASE("workers that saved in different rounds, or joined later, are of one part") {
  MadeRun made(3);
  for (const int rank : {0, 1}) made.line(rank, "start", 0).line(rank, "epoch", 10);
  const auto starts = [&](int rank, int time, const nlohmann::json& facts) {
    nlohmann::json line{{"kind", "start"}, {"time", time}, {"seconds", 0}, {"resumed_from", 7}};
    line.update(facts);
    fast_report::take_line(made.run.workers.at(rank), line);
  };
  for (const int rank : {0, 1}) starts(rank, 5000, {{"resumed_step", 7 + rank}});
  starts(2, 5000, nlohmann::json::object());
  const Run& run = made.done();
  REQUIRE(fast_report::parts_of(run.workers) == 2);
  for (const int rank : {0, 1, 2}) {
    REQUIRE(run.workers.at(rank).parts.back().number == 1);
    REQUIRE(run.workers.at(rank).parts.back().offset_s == Approx(10));
  }
}

TEST_CASE("workers are aligned by their clocks, unless the clocks are wrong") {
  MadeRun made(3);
  for (const int rank : {0, 1, 2}) {
    const double began = rank == 1 ? 1003 : rank == 2 ? 99'999 : 1000;
    fast_report::take_line(made.run.workers.at(rank),
                           {{"kind", "start"}, {"time", began}, {"seconds", 0}});
    fast_report::take_line(made.run.workers.at(rank),
                           {{"kind", "interval"}, {"time", began + 20}, {"seconds", 20}});
  }
  const Run& run = made.done();
  const double first = run.workers.at(0).parts[0].offset_s;
  REQUIRE(run.workers.at(1).parts[0].offset_s - first == Approx(3));
  REQUIRE(std::abs(run.workers.at(2).parts[0].offset_s) <= 3);
}

TEST_CASE("workers whose clocks differ are aligned by the differences that the run has measured") {
  MadeRun made(3);
  for (const int rank : {0, 1, 2}) {
    const double offset = rank == 1 ? 4 : rank == 2 ? -5000 : 0, late = 0.5 * rank;
    fast_report::take_line(made.run.workers.at(rank), {{"kind", "start"},
                                                       {"time", 1000 + offset + late},
                                                       {"seconds", 0},
                                                       {"clock_offset", offset}});
    fast_report::take_line(made.run.workers.at(rank),
                           {{"kind", "interval"}, {"time", 1020 + offset + late}, {"seconds", 20}});
  }
  const Run& run = made.done();
  for (const int rank : {0, 1, 2}) {
    CHECK(run.workers.at(rank).parts[0].offset_s == Approx(0.5 * rank));
  }
  CHECK(fast_report::last_second(run) == Approx(21));
}

TEST_CASE("ranges are short") {
  REQUIRE(fast_report::as_ranges({}).empty());
  REQUIRE(fast_report::as_ranges({3}) == "3");
  REQUIRE(fast_report::as_ranges({0, 1, 4, 5, 6, 9}) == "0, 1, 4-6, 9");
}
