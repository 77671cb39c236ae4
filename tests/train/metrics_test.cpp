#include <fast/core/error.hpp>
#include <fast/train/metrics.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

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
  CHECK(metrics.path().filename() == "metrics-3.jsonl");
  const std::size_t round = 7;
  metrics.write({{"round", round}, {"loss", 0.1}, {"event", "epoch \"1\"\n"}, {"last", false}});
  REQUIRE(lines_of(metrics.path()).size() == 1);
  metrics.write(std::vector<Metric>{{"loss", 1.5F}, {"epoch", -1}, {"name", std::string("x")}});
  const auto lines = lines_of(metrics.path());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["round"] == 7);
  CHECK(lines[0]["loss"].get<double>() == 0.1);
  CHECK(lines[0]["event"] == "epoch \"1\"\n");
  CHECK(lines[0]["last"] == false);
  CHECK(lines[1] == nlohmann::json{{"loss", 1.5}, {"epoch", -1}, {"name", "x"}});
}

TEST_CASE("what is not finite is written as null, invalid text is replaced") {
  const testing::TemporaryDirectory directory;
  MetricsWriter metrics(directory.path(), 0);
  metrics.write({{"nan", std::numeric_limits<double>::quiet_NaN()},
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
  std::filesystem::create_directory(directory / "metrics-1.jsonl");
  CHECK_THROWS_WITH(MetricsWriter(directory.path(), 1), ContainsSubstring("metrics-1.jsonl"));
}

TEST_CASE("a full disk is noticed at the line that does not fit") {
  const testing::TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory / "metrics-0.jsonl");
  MetricsWriter metrics(directory.path(), 0);
  CHECK_THROWS_WITH(metrics.write({{"round", 1}}), ContainsSubstring("metrics-0.jsonl"));
}
