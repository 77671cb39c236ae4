#include <fast/core/error.hpp>
#include <fast/train/summary.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using train::Summary;

namespace {

Summary example() {
  Summary s;
  s.test_accuracy_mean_model = 0.8843;
  s.bytes_sent_per_worker_per_round = 246824;
  s.rounds = 1170;
  s.workers = 4;
  s.topology = "torus2d \"2x2\"";
  s.staleness = "inf";
  s.spectral_gap = std::numeric_limits<double>::quiet_NaN();
  return s;
}

}  // namespace

TEST_CASE("measures of a task stand in the place of the accuracy") {
  fast::train::Summary summary;
  summary.measures = {{"mae", fast::Measure::Form::mean, 0.12345, 0.25},
                      {"top5", fast::Measure::Form::share, 0.5, 0.25}};
  const auto json = nlohmann::ordered_json::parse(summary.to_json());
  CHECK_FALSE(json.contains("test_accuracy_mean_model"));
  CHECK(json.begin().key() == "test_mae_mean_model");
  CHECK(json.at("test_mae_mean_model") == 0.12345);
  CHECK(json.at("test_mae_worst_worker") == 0.25);
  CHECK(json.at("test_top5_worst_worker") == 0.25);
  const std::string table = summary.to_table();
  CHECK_THAT(table, ContainsSubstring("  test mae, mean model          0.1235\n"));
  CHECK_THAT(table, ContainsSubstring("  test top5, worst worker       25.00 %\n"));
  CHECK_THAT(table, !ContainsSubstring("accuracy"));
}

TEST_CASE("a summary's JSON holds every field in order") {
  const auto json = nlohmann::ordered_json::parse(example().to_json());
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  CHECK(keys == std::vector<std::string>{"test_accuracy_mean_model",
                                         "test_accuracy_worst_worker",
                                         "test_loss_mean_model",
                                         "consensus_distance",
                                         "samples_per_second",
                                         "wait_fraction",
                                         "publish_fraction",
                                         "mix_fraction",
                                         "fresh_fraction",
                                         "sent_fraction",
                                         "bytes_sent_per_worker_per_round",
                                         "rounds",
                                         "closing_rounds",
                                         "epochs",
                                         "lr_reductions",
                                         "workers",
                                         "topology",
                                         "spectral_gap",
                                         "lazy_weights",
                                         "connected",
                                         "exchange",
                                         "algorithm",
                                         "codec",
                                         "staleness",
                                         "seconds",
                                         "rejoined",
                                         "healed",
                                         "shares",
                                         "lost",
                                         "replaced",
                                         "left",
                                         "joined",
                                         "repeated_samples",
                                         "parts",
                                         "stopped",
                                         "unsaved"});
  CHECK(json["test_accuracy_mean_model"] == 0.8843);
  CHECK(json["rounds"] == 1170);
  CHECK(json["topology"] == "torus2d \"2x2\"");
  CHECK(json["staleness"] == "inf");
  CHECK(json["spectral_gap"].is_null());
}

TEST_CASE("a run that is to be continued has no figures but its rounds, epochs and seconds") {
  train::Summary summary;
  summary.evaluated = false;
  summary.rounds = 7;
  summary.seconds = 2.5;
  const auto json = nlohmann::json::parse(summary.to_json());
  for (const char* key : {"test_accuracy_mean_model", "test_accuracy_worst_worker",
                          "test_loss_mean_model", "consensus_distance", "samples_per_second"})
    CHECK(json.at(key).is_null());
  CHECK(json.at("rounds") == 7);
  CHECK(json.at("seconds") == 2.5);
}

TEST_CASE("a summary's table shows percentages and sizes for people") {
  const std::string table = example().to_table();
  CHECK_THAT(table, ContainsSubstring("  test accuracy, mean model     88.43 %\n"));
  CHECK_THAT(table, ContainsSubstring("246.8 kB\n") &&
                        ContainsSubstring("  staleness                     inf\n"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 21);
}

TEST_CASE("a summary names the worker of which robust averaging has kept least") {
  train::Summary summary = example();
  CHECK_THAT(summary.to_table(), !ContainsSubstring("kept"));
  summary.shares = {{0, 10, 2, 0.9}, {3, 10, 9, 0.02}};
  CHECK_THAT(summary.to_table(),
             ContainsSubstring(
                 "  least kept                    2.00 % of worker 3, clipped in 9 of 10 reads\n"));
  const auto json = nlohmann::json::parse(summary.to_json());
  CHECK(json["shares"][1] ==
        nlohmann::json{{"worker", 3}, {"reads", 10}, {"clipped", 9}, {"kept", 0.02}});
  summary.shares = {{0, 10, 0, 1}, {3, 10, 0, 1}};
  CHECK_THAT(summary.to_table(), ContainsSubstring("  least kept                    everything\n"));
}

TEST_CASE("a summary says that the algorithm has made the weights lazy") {
  train::Summary summary = example();
  summary.spectral_gap = 0.25;
  CHECK_THAT(summary.to_table(), !ContainsSubstring("lazy"));
  summary.lazy_weights = true;
  CHECK_THAT(summary.to_table(),
             ContainsSubstring("  spectral gap                  0.25, lazy weights (I + W) / 2\n"));
}

TEST_CASE("a table of results repeats nothing of the opening table") {
  const std::string table = example().results_table();
  CHECK_THAT(table, ContainsSubstring("  rounds                        1170\n"));
  for (const char* row : {"workers", "topology", "spectral", "exchange", "codec", "staleness"})
    CHECK_THAT(table, !ContainsSubstring(std::string("\n  ") + row + " "));
  CHECK(std::count(table.begin(), table.end(), '\n') == 14);
}

TEST_CASE("the results of an all-reduce have no rows about neighbors") {
  train::Summary summary = example();
  summary.exchange = "allreduce";
  for (const std::string& table : {summary.to_table(), summary.results_table()}) {
    for (const char* row : {"consensus", "time publishing", "time mixing", "fresh", "messages",
                            "closing", "topology", "spectral", "algorithm", "codec", "staleness"})
      CHECK_THAT(table, !ContainsSubstring(std::string("\n  ") + row));
    CHECK_THAT(table, ContainsSubstring("\n  time waiting") && ContainsSubstring("\n  sent per"));
  }
}

TEST_CASE("a summary names the parts that deaths have cut the workers into") {
  train::Summary summary = example();
  summary.lost = {1, 3};
  summary.parts = {{4, 5}, {0}};
  CHECK_THAT(summary.to_table(),
             ContainsSubstring("  lost workers                  1, 3\n"
                               "  parts                         {4, 5} and {0}"));
  CHECK(nlohmann::json::parse(summary.to_json())["parts"].dump() == "[[4,5],[0]]");
}

TEST_CASE("a summary names the workers that spares have replaced") {
  train::Summary summary = example();
  CHECK_THAT(summary.to_table(), !ContainsSubstring("replaced"));
  summary.replaced = {2, 3};
  summary.repeated_samples = 128;
  CHECK_THAT(summary.to_table(),
             ContainsSubstring("  replaced by spares            2, 3; 128 samples used again\n"));
  CHECK(nlohmann::json::parse(summary.to_json())["replaced"].dump() == "[2,3]");
}

TEST_CASE("a summary names the workers that have left as they were asked to") {
  train::Summary summary = example();
  CHECK_THAT(summary.to_table(), !ContainsSubstring("left as asked"));
  summary.left = {0, 2};
  CHECK_THAT(summary.to_table(), ContainsSubstring("  left as asked to              0, 2\n"));
  CHECK(nlohmann::json::parse(summary.to_json())["left"].dump() == "[0,2]");
}

TEST_CASE("a summary names the workers that have joined") {
  train::Summary summary = example();
  CHECK_THAT(summary.to_table(), !ContainsSubstring("joined as asked"));
  summary.joined = {4, 5};
  CHECK_THAT(summary.to_table(), ContainsSubstring("  joined as asked to            4, 5\n"));
  CHECK(nlohmann::json::parse(summary.to_json())["joined"].dump() == "[4,5]");
}

TEST_CASE("a summary is written to a file or the file is named") {
  const testing::TemporaryDirectory directory;
  example().write_json(directory / "summary.json");
  std::ifstream in(directory / "summary.json");
  CHECK(nlohmann::json::parse(in)["workers"] == 4);
  CHECK_THROWS_WITH(example().write_json(directory / "gone/summary.json"),
                    ContainsSubstring("gone/summary.json"));
}

TEST_CASE("workers that were lost, left, joined or replaced are not the same as at the start") {
  CHECK(train::Summary{}.same_workers());
  for (const auto list : {&train::Summary::lost, &train::Summary::replaced, &train::Summary::left,
                          &train::Summary::joined}) {
    train::Summary summary;
    summary.*list = {1};
    CHECK_FALSE(summary.same_workers());
  }
  train::Summary alone;
  alone.ended_alone = true;
  CHECK_FALSE(alone.same_workers());
}
