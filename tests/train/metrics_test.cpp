#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fast/core/error.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/temporary_directory.hpp"
#include "train/metrics.hpp"

using namespace fast;
using train::Metric;
using train::MetricsWriter;

namespace {

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("every line written is one object and readable at once") {
  const testing::TemporaryDirectory directory;
  MetricsWriter metrics(directory / "run/one", 3);
  CHECK(metrics.path() == directory / "run/one/metrics/3.jsonl");
  const std::size_t round = 7;
  metrics.write("epoch",
                {{"round", round}, {"loss", 0.1}, {"event", "epoch \"1\"\n"}, {"last", false}});
  REQUIRE(lines_of(metrics.path()).size() == 1);
  metrics.write("event",
                std::vector<Metric>{{"loss", 1.5F}, {"epoch", -1}, {"name", std::string("x")}});
  const auto lines = lines_of(metrics.path());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["round"] == 7);
  CHECK(lines[0]["loss"].get<double>() == 0.1);
  CHECK(lines[0]["event"] == "epoch \"1\"\n");
  CHECK(lines[0]["last"] == false);
  for (const char* of_all : {"time", "seconds"}) CHECK(lines[1].at(of_all).is_number());
  auto rest = lines[1];
  rest.erase("time");
  rest.erase("seconds");
  CHECK(rest == nlohmann::json{
                    {"kind", "event"}, {"rank", 3}, {"loss", 1.5}, {"epoch", -1}, {"name", "x"}});
}

TEST_CASE("what is not finite is written as null, invalid text is replaced") {
  const testing::TemporaryDirectory directory;
  MetricsWriter metrics(directory.path(), 0);
  metrics.write("epoch", {{"nan", std::numeric_limits<double>::quiet_NaN()},
                          {"inf", -std::numeric_limits<float>::infinity()},
                          {"text", "\xff"}});
  const auto line = lines_of(metrics.path()).at(0);
  CHECK(line["nan"].is_null());
  CHECK(line["inf"].is_null());
  CHECK(line["text"].is_string());
}

TEST_CASE("a directory that cannot be written is refused with its name") {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory / "file") << "x";
  CHECK_THROWS_WITH(MetricsWriter(directory / "file/out", 0), ContainsSubstring("file/out"));
  std::filesystem::create_directories(directory / "metrics/1.jsonl");
  CHECK_THROWS_WITH(MetricsWriter(directory.path(), 1), ContainsSubstring("metrics/1.jsonl"));
}

TEST_CASE("a full disk is noticed at the line that does not fit") {
  const testing::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "metrics");
  std::filesystem::create_symlink("/dev/full", directory / "metrics/0.jsonl");
  MetricsWriter metrics(directory.path(), 0);
  CHECK_THROWS_WITH(metrics.write("epoch", {{"round", 1}}), ContainsSubstring("metrics/0.jsonl"));
}

TEST_CASE("lists and objects are written as such, times are those of the clock") {
  const testing::TemporaryDirectory directory;
  const auto now_s = [] {
    return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  const double before_s = now_s();
  MetricsWriter metrics(directory.path(), 0);
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  metrics.write("start", {{"neighbors", std::vector<int>{1, 3}},
                          {"lost", std::vector<int>()},
                          {"waits", train::Figures{{"1", 0.5}, {"3", unknown}}},
                          {"none", train::Figures()}});
  const auto line = lines_of(metrics.path()).at(0);
  CHECK(line["neighbors"] == nlohmann::json::array({1, 3}));
  CHECK(line["lost"] == nlohmann::json::array());
  CHECK(line["waits"] == nlohmann::json{{"1", 0.5}, {"3", nullptr}});
  CHECK(line["none"] == nlohmann::json::object());
  CHECK(line["time"] >= before_s);
  CHECK(line["time"] <= now_s());
  CHECK(line["seconds"] >= 0);
  CHECK(line["seconds"] <= now_s() - before_s + 1);
}

namespace {

std::string line_at(double time, int rank, std::string_view kind = "interval") {
  return fmt::format("{{\"kind\":\"{}\",\"time\":{},\"seconds\":0.5,\"rank\":{}}}\n", kind, time,
                     rank);
}

/// This process may open so many files more.
class OpenFiles {
 public:
  explicit OpenFiles(rlim_t more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = open("/dev/null", O_RDONLY);
    close(next);
    const rlimit limit{static_cast<rlim_t>(next) + more, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~OpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE(
    "merged lines are sorted by time, a worker's own keep their order, cut ones are left out") {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path metrics = directory / "metrics";
  std::filesystem::create_directory(metrics);
  // Worker 0's clock was set back between its lines of 4 and 2.5.
  std::ofstream(metrics / "0.jsonl") << line_at(1.25, 0) << line_at(4, 0) << line_at(2.5, 0);
  std::ofstream(metrics / "1.jsonl") << line_at(0.5, 1, "start") << "{\"kind\":\"inter\n"
                                     << line_at(3, 1) << line_at(1e9, 1) << "{\"kind\":\"e";
  std::ofstream(metrics / "notes.jsonl") << line_at(2, 7);
  std::ofstream(metrics / "10.jsonl") << "";
  std::ofstream(directory / "metrics.jsonl") << "of an earlier run\n";
  train::merge_metrics(directory.path());
  CHECK(contents(directory / "metrics.jsonl") == line_at(0.5, 1, "start") + line_at(1.25, 0) +
                                                     line_at(3, 1) + line_at(4, 0) +
                                                     line_at(2.5, 0) + line_at(1e9, 1));
  const auto begin = std::filesystem::directory_iterator(directory.path());
  CHECK(std::distance(begin, std::filesystem::directory_iterator()) == 2);  // no temporary file
}

TEST_CASE("merged lines are sorted by worker 0's clock where the differences are known") {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path metrics = directory / "metrics";
  std::filesystem::create_directory(metrics);
  const std::string start_of_1 =
      "{\"kind\":\"start\",\"time\":102,\"seconds\":0,\"rank\":1,\"clock_offset\":100.5}\n";
  std::ofstream(metrics / "0.jsonl") << line_at(1, 0, "start") << line_at(2, 0) << line_at(4, 0);
  std::ofstream(metrics / "1.jsonl") << start_of_1 << line_at(103, 1);
  CHECK(train::merge_metrics(directory.path()).empty());
  CHECK(contents(directory / "metrics.jsonl") ==
        line_at(1, 0, "start") + start_of_1 + line_at(2, 0) + line_at(103, 1) + line_at(4, 0));
}

TEST_CASE("files of metrics that cannot be read are named, the others are merged") {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path metrics = directory / "metrics";
  std::filesystem::create_directory(metrics);
  std::ofstream(metrics / "0.jsonl") << line_at(1, 0);
  std::ofstream(metrics / "1.jsonl") << line_at(2, 1);
  std::vector<std::filesystem::path> omitted;
  {
    const OpenFiles room(2);  // the merged file and one of the two
    omitted = train::merge_metrics(directory.path());
  }
  CHECK(omitted == std::vector<std::filesystem::path>{metrics / "1.jsonl"});
  CHECK(contents(directory / "metrics.jsonl") == line_at(1, 0));
}

TEST_CASE("metrics that cannot be merged are refused with the file's name") {
  const testing::TemporaryDirectory directory;
  std::filesystem::create_directories(directory / "metrics.jsonl/in-the-way");
  CHECK_THROWS_WITH(train::merge_metrics(directory.path()), ContainsSubstring("metrics.jsonl"));
  CHECK_THROWS_WITH(train::merge_metrics(directory / "gone"), ContainsSubstring("gone"));
}
