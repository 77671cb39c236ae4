#include <cmath>
#include <fast/core/error.hpp>
#include <fast/simulation/workload.hpp>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::simulation;
using Catch::Matchers::Contains;

TEST_CASE("lognormal steps have the given mean and the given spread of the logarithm") {
  WorkTimes work;
  work.seconds = 2;
  work.jitter = 0.3;
  const int draws = 40'000;
  double sum = 0, logs = 0, squares = 0;
  for (int k = 0; k < draws; ++k) {
    const double step = work.of(k % 200, k / 200);
    sum += step;
    logs += std::log(step);
    squares += std::log(step) * std::log(step);
  }
  const double mean_log = logs / draws;
  // Five standard errors.
  CHECK(sum / draws == Approx(2).margin(5 * 2 * 0.31 / std::sqrt(draws)));
  CHECK(std::sqrt(squares / draws - mean_log * mean_log) ==
        Approx(0.3).margin(5 * 0.3 / std::sqrt(2.0 * draws)));
  CHECK(work.of(3, 7) == work.of(3, 7));
}

TEST_CASE("slow workers take their factor") {
  WorkTimes work;
  work.seconds = 2;
  work.slow[1] = 2.5;
  CHECK(work.of(0, 0) == 2);
  CHECK(work.of(1, 0) == 5);
}

TEST_CASE("failures come at their rate") {
  Failures failures;
  failures.per_worker_hour = 36;  // one in 100 s
  int failed = 0;
  for (int k = 0; k < 40'000; ++k) {
    const double share = failures.fails_after(k % 100, k / 100, 1);
    CHECK(share < 1);
    failed += share >= 0 ? 1 : 0;
  }
  const double expected = 40'000 * -std::expm1(-0.01);
  CHECK(failed == Approx(expected).margin(5 * std::sqrt(expected)));
  CHECK(Failures{}.fails_after(0, 0, 1e9) < 0);
}

TEST_CASE("rounds before a resume, a seat or a join are not counted as measured") {
  const fast::testing::TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "metrics");
  const char* interval = R"({"kind":"interval","step":110,"phases":{"step":2.0}})";
  const char* epoch = R"({"kind":"epoch","step":110,"phases":{"step":2.0}})";
  const auto write = [&](const char* name, const std::vector<std::string>& lines) {
    std::ofstream file(directory.path() / "metrics" / name);
    for (const std::string& line : lines) file << line << "\n";
  };
  write("0.jsonl", {R"({"kind":"start","resumed_step":100})", interval});
  write("1.jsonl", {R"({"kind":"start","resumed_step":100})", epoch});
  write("2.jsonl", {R"({"kind":"event","event":"seat taken","step":100,"worker":2})", interval});
  write("3.jsonl", {R"({"kind":"start"})", R"({"kind":"event","event":"joined","step":100})",
                    R"({"kind":"event","event":"checkpoint","step":105})", interval});
  // Resumed after a kill: rounds 100 to 110 once more.
  write("4.jsonl", {R"({"kind":"start"})", R"({"kind":"interval","step":110,"phases":{"step":22}})",
                    R"({"kind":"start","resumed_step":100})", interval});
  const std::vector<std::vector<double>> steps = measured_steps(directory.path().string());
  using List = std::vector<double>;
  CHECK(steps == std::vector<List>{{0.2}, {0.2}, {0.2}, {0.2}, {0.2, 0.2}});
}

TEST_CASE("steps come from the metrics of a run") {
  const fast::testing::TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "metrics");
  std::ofstream(directory.path() / "metrics/0.jsonl")
      << R"({"kind":"start"})"
      << "\n"
      << R"({"kind":"interval","step":10,"phases":{"step":2.0}})"
      << "\n"
      << R"({"kind":"interval","step":14,"phases":{"step":1.0}})"
      << "\n"
      << R"({"kind":"epoch","step":14,"phases":{"step":3.0}})"
      << "\n"
      << R"({"kind":"interval","st)";
  std::ofstream(directory.path() / "metrics/1.jsonl")
      << R"({"kind":"epoch","step":5,"phases":{"step":10.0}})"
      << "\n";
  const std::vector<std::vector<double>> steps = measured_steps(directory.path().string());
  REQUIRE(steps.size() == 2);
  CHECK(steps[0] == std::vector<double>{0.2, 0.25});
  CHECK(steps[1] == std::vector<double>{2});
  WorkTimes work;
  work.measured = steps;
  CHECK(work.of(1, 0) == 2);
  CHECK(work.of(3, 0) == 2);
  CHECK((work.of(0, 0) == 0.2 || work.of(0, 0) == 0.25));
  CHECK_THROWS_WITH(measured_steps("/no/such/run"), Contains("/no/such/run/metrics has no file"));
}
