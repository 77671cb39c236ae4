#include <cmath>
#include <numbers>

#include "fast_report/curves.hpp"
#include "fast_report/summary.hpp"
#include "fast_report/time_use.hpp"
#include "fast_report/workers.hpp"
#include "run_directory.hpp"
#include "support/catch.hpp"

using namespace fast_report;
using nlohmann::json;
using report_test::MadeRun;

namespace {

Run run_of(int workers, const std::string& topology) {
  MadeRun made(workers);
  for (int rank = 0; rank < workers; ++rank) made.line(rank, "start", 0, {{"workers", workers}});
  made.run.options = {{"topology", topology}, {"algorithm", "awc"}, {"staleness", "0"}};
  return made.done();
}

void set_option(Run& run, const std::string& name, const std::string& value) {
  std::erase_if(run.options, [&](const Option& option) { return option.name == name; });
  run.options.push_back({name, value});
}

}  // namespace

TEST_CASE("means over workers are weighted by the samples that each tested on") {
  MadeRun made(2);
  made.line(0, "epoch", 1,
            {{"epoch", 1}, {"loss", 1}, {"test_accuracy", 0.5}, {"test_samples", 100}});
  made.line(1, "epoch", 3,
            {{"epoch", 1}, {"loss", 2}, {"test_accuracy", 0.9}, {"test_samples", 300}});
  const auto tested = means(points(made.done(), "test_accuracy"));
  REQUIRE(tested.size() == 1);
  REQUIRE(tested[0].value == Approx((100 * 0.5 + 300 * 0.9) / 400));
  REQUIRE(tested[0].seconds == Approx(2));
  REQUIRE(tested[0].worker == 2);
  REQUIRE(*last_mean(made.run, "loss") == Approx(1.5));
  REQUIRE_FALSE(last_mean(made.run, "validation_loss"));
}

TEST_CASE("a validation that is the test is one curve") {
  MadeRun made(1);
  made.line(0, "epoch", 1, {{"epoch", 1}, {"validation_loss", 0.7}, {"test_loss", 0.7}});
  REQUIRE(are_same(made.done(), "validation_loss", "test_loss"));
  REQUIRE(
      curves(made.run, {{"validation_loss", "validation"}, {"test_loss", "test"}}).mean.size() ==
      1);
  made.line(0, "epoch", 2, {{"epoch", 2}, {"validation_loss", 0.6}, {"test_loss", 0.5}});
  REQUIRE_FALSE(are_same(made.run, "validation_loss", "test_loss"));
  REQUIRE(
      curves(made.run, {{"validation_loss", "validation"}, {"test_loss", "test"}}).mean.size() ==
      4);
}

TEST_CASE("a long run is thinned, and keeps its last epoch") {
  MadeRun made(1);
  for (int epoch = 1; epoch <= 5000; ++epoch)
    made.line(0, "epoch", epoch, {{"epoch", epoch}, {"loss", epoch}});
  const auto all = points(made.done(), "loss");
  REQUIRE(all.size() <= most_points + 1);
  REQUIRE(all.back().epoch == 5000);
}

TEST_CASE("the gap of a ring is that of its closed form") {
  // Weights 1/3: eigenvalues 1/3 + 2/3 cos(2 pi k / N).
  const double second = 1.0 / 3 + 2.0 / 3 * std::cos(2 * std::numbers::pi / 8);
  const Contraction rate = contraction(run_of(8, "ring"));
  REQUIRE(rate.gap);
  REQUIRE(*rate.gap == Approx(1 - second));
  REQUIRE(rate.rounds_per_tenth() == Approx(std::log(0.1) / std::log(second)));
}

TEST_CASE("no rate is predicted where 1 - gap does not describe a round") {
  REQUIRE_THAT(contraction(run_of(8, "one_peer_exponential")).why_not,
               ContainsSubstring("changes from round"));
  REQUIRE_THAT(contraction(run_of(1, "ring")).why_not, ContainsSubstring("one worker"));
  REQUIRE_THAT(contraction(run_of(8, "gone.toml")).why_not, ContainsSubstring("gone.toml"));
  Run run = run_of(8, "ring");
  set_option(run, "staleness", "2");
  REQUIRE_THAT(contraction(run).why_not, ContainsSubstring("staleness 2"));
  set_option(run, "staleness", "0");
  set_option(run, "algorithm", "local");
  REQUIRE_THAT(contraction(run).why_not, ContainsSubstring("local"));
  set_option(run, "algorithm", "awc");
  set_option(run, "mix-every", "4");
  REQUIRE_FALSE(contraction(run).gap);
  set_option(run, "mix-every", "1");
  REQUIRE(contraction(run).gap);
}

TEST_CASE("the gap is that which the run has told: its topology may follow the hosts") {
  Run run = run_of(8, "hierarchical");
  const Contraction recomputed = contraction(run);  // of hosts of 4
  REQUIRE(recomputed.gap);
  MadeRun told(8);
  for (int rank = 0; rank < 8; ++rank) told.line(rank, "start", 0, {{"spectral_gap", 0.03125}});
  told.run.options = run.options;
  CHECK(*contraction(told.done()).gap == 0.03125);
  CHECK(*recomputed.gap != 0.03125);
}

TEST_CASE("the figures of a run that still trains are those of the epochs that all have finished") {
  MadeRun made(3);
  for (const int rank : {0, 1, 2}) {
    made.line(rank, "start", 0);
    for (int epoch = 1; epoch <= 2 + 2 * rank; ++epoch) {
      made.line(rank, "epoch", epoch,
                {{"epoch", epoch}, {"loss", 8 - epoch + 0.1 * rank}, {"samples_per_second", 10}});
    }
  }
  Run& run = made.done();
  CHECK(*last_mean(run, "loss") == Approx(6.1));
  CHECK(means(run, "loss").back().epoch == 2);
  CHECK(*summarize(run).samples_per_second == Approx(30));
  made.line(1, "event", 7, {{"event", "suspected"}, {"worker", 0}});
  CHECK(*last_mean(run, "loss") == Approx(4.15));  // of workers 1 and 2 after epoch 4
  made.line(1, "end", 7);
  made.line(2, "end", 7);
  CHECK(*last_mean(run, "loss") == Approx(2.2));
}

TEST_CASE("a field that only some workers measure is not waited for in the others") {
  MadeRun made(2);
  made.line(0, "epoch", 1, {{"epoch", 1}, {"validation_accuracy", 0.25}});
  made.line(0, "epoch", 2, {{"epoch", 2}, {"validation_accuracy", 0.75}});
  made.line(1, "epoch", 1, {{"epoch", 1}});
  CHECK(*last_mean(made.done(), "validation_accuracy") == 0.75);
}

TEST_CASE("averaging that keeps a tenth takes two rounds to a hundredth") {
  const auto at = [](double rounds, double value) {
    Point point;
    point.rounds = rounds;
    point.value = value;
    return point;
  };
  const json rows = prediction({at(0, 0), at(10, 1.0), at(20, 0.01), at(30, 0.5)}, 0.9);
  REQUIRE(rows.size() == 3);
  REQUIRE(rows[0] == json{{"rounds", 10.0}, {"value", 1.0}});
  REQUIRE(rows[1]["rounds"].get<double>() == Approx(12));
  REQUIRE(rows[1]["value"].get<double>() == Approx(0.01));
  REQUIRE(rows[2]["rounds"].get<double>() == Approx(30));
  REQUIRE(prediction({at(0, 0), at(10, 2)}, 0.9).empty());
  REQUIRE(prediction({}, 0.9).empty());
}

TEST_CASE("workers end in the state that their lines and the others' lines say") {
  MadeRun made(7);
  for (int rank = 0; rank < 6; ++rank) made.line(rank, "start", 0);
  made.line(0, "event", 1, {{"event", "suspected"}, {"worker", 2}});
  made.line(0, "event", 1, {{"event", "suspected"}, {"worker", 3}});
  made.line(0, "event", 2, {{"event", "returned"}, {"worker", 3}});
  made.line(1, "event", 2, {{"event", "suspected"}, {"worker", 4}});
  made.line(5, "event", 2, {{"event", "stopped"}});
  made.line(0, "end", 3, {{"lost", {4}}});
  made.line(1, "end", 3);
  const auto state = states(made.done());
  REQUIRE(state.at(0).state == State::finished);
  REQUIRE(state.at(1).state == State::finished);
  REQUIRE(state.at(2).state == State::suspected);
  REQUIRE(state.at(2).detail == "last suspected by worker 0");
  REQUIRE(state.at(3).state == State::no_end);
  REQUIRE(state.at(4).state == State::lost);
  REQUIRE(state.at(5).state == State::stopped);
  REQUIRE(state.at(6).state == State::no_data);
}

TEST_CASE("a run that failed says so, with the first failure's message") {
  MadeRun made(4);
  for (int rank = 0; rank < 4; ++rank) made.line(rank, "start", 0);
  made.line(0, "event", 9, {{"event", "failed"}, {"worker", 0}, {"text", "worker 2 has failed"}});
  made.line(0, "end", 9, {{"state", "failed"}});
  made.line(1, "event", 9, {{"event", "failed"}, {"text", "of an older version"}});
  made.line(2, "event", 8, {{"event", "failed"}, {"worker", 2}, {"text", "the loss is nan"}});
  made.line(2, "end", 8, {{"state", "failed"}});
  made.line(3, "event", 5, {{"event", "left"}});
  made.line(3, "end", 5, {{"state", "left"}});
  const auto state = states(made.done());
  for (const int rank : {0, 1, 2}) CHECK(state.at(rank).state == State::failed);
  CHECK(state.at(2).detail == "the loss is nan");
  CHECK(state.at(3).state == State::left);
  CHECK(findings(made.run)[1] ==
        "0 of 4 workers finished. The run failed on worker 2: the loss is nan. Left on request: "
        "worker 3.");
}

TEST_CASE("a worker that ended the first part only has no end in the second") {
  MadeRun made(2);
  for (const int rank : {0, 1}) made.line(rank, "start", 0).line(rank, "end", 5);
  take_line(made.run.workers.at(0),
            {{"kind", "start"}, {"time", 2000}, {"seconds", 0}, {"resumed_step", 9}});
  take_line(made.run.workers.at(0), {{"kind", "end"}, {"time", 2005}, {"seconds", 5}});
  const auto state = states(made.done());
  REQUIRE(state.at(0).state == State::finished);
  REQUIRE(state.at(1).state == State::no_data);
}

TEST_CASE("the shares of a worker's phases sum to 1") {
  MadeRun made(2);
  made.line(0, "epoch", 4,
            {{"phases", {{"step", 3}, {"wait", 1}}}, {"waits", {{"1", 0.5}, {"x", 9}, {"-1", 9}}}});
  made.line(0, "interval", 2, {{"phases", {{"step", 1}, {"wait", 1}}}});
  made.line(1, "epoch", 4,
            {{"phases", {{"step", 2}, {"later", 1}, {"rest", 1}, {"wait", nullptr}}}});
  std::map<int, double> sums;
  for (const json& row : anatomy(made.done())) sums[row["worker"]] += row["share"].get<double>();
  REQUIRE(sums.at(0) == Approx(1));
  REQUIRE(sums.at(1) == Approx(1));
  const auto spent = totals(made.run);
  REQUIRE(spent.at(0).wait_share() ==
          Approx(0.25));  // the epoch covers more time than the interval
  REQUIRE(waited_for(spent) == std::map<int, double>{{1, 0.5}});
  REQUIRE(phases_in_order(sum(spent)) == std::vector<std::string>{"step", "wait", "rest", "later"});
}

TEST_CASE("cells of the heat map follow one another and are joined in long runs") {
  MadeRun made(1);
  for (int i = 1; i <= 1000; ++i) {
    made.line(0, "interval", 2 * i,
              {{"phases", {{"step", 1.5}, {"wait", 0.5}}}, {"waits", {{"3", 0.5}}}});
  }
  const json cells = waiting_over_time(made.done());
  REQUIRE(cells.size() == most_cells);
  double at = 0;
  for (const json& cell : cells) {
    REQUIRE(cell["from"].get<double>() == Approx(at));
    REQUIRE(cell["share"].get<double>() == Approx(0.25));
    at = cell["to"];
  }
  REQUIRE(at == Approx(2000));
  REQUIRE(cells[0]["peer"] == "worker 3 (2.50 s)");
}

TEST_CASE("events that several workers see at once are one row") {
  MadeRun made(4);
  made.line(0, "event", 5.0, {{"event", "suspected"}, {"worker", 3}, {"step", 40}});
  made.line(1, "event", 5.4, {{"event", "suspected"}, {"worker", 3}});
  made.line(0, "event", 9.0, {{"event", "suspected"}, {"worker", 3}});
  made.line(2, "event", 5.0, {{"event", "checkpoint"}});
  const json rows = events_over_time(made.done());
  REQUIRE(rows.size() == 3);
  REQUIRE(rows[0]["worker"] == 2);
  REQUIRE(rows[1]["seen_by"] == "0, 1");
  REQUIRE(rows[1]["count"] == 2);
  REQUIRE(rows[1]["step"] == 40);
  REQUIRE(rows[2]["seconds"].get<double>() == Approx(9));
}

TEST_CASE("workers stand on the grid that the topology names, or on a circle") {
  const Places grid(6, "torus 2x3");
  REQUIRE(grid.is_grid());
  REQUIRE(grid.at(4).x == 1);
  REQUIRE(grid.at(4).y == -1);
  REQUIRE(grid.halfway(0, 1).x == Approx(0.5));
  REQUIRE(grid.halfway(0, 2).x == Approx(-0.5));  // leaves the grid on the left
  REQUIRE(grid.halfway(2, 0).x == Approx(2.5));
  REQUIRE(grid.halfway(0, 3).y == Approx(-0.5));  // two rows: the neighbor is in the grid
  for (const char* name : {"ring", "torus 2x4", "torus 1x6", "torus 6", "x", ""}) {
    const Places circle(6, name);
    REQUIRE_FALSE(circle.is_grid());
    REQUIRE(std::hypot(circle.at(1).x, circle.at(1).y) ==
            Approx(std::hypot(circle.at(4).x, circle.at(4).y)));
  }
}

TEST_CASE("edges are those that workers read or waited for") {
  MadeRun made(3);
  made.line(0, "start", 0, {{"neighbors", {1, 7}}, {"topology", "ring"}});
  made.line(0, "epoch", 4, {{"phases", {{"step", 3}, {"wait", 1}}}, {"waits", {{"2", 1}}}});
  const Run& run = made.done();
  const json edges = network(run, states(run)).edges;
  REQUIRE(edges.size() == 2);  // there is no worker 7
  REQUIRE(edges[0]["peer"] == 1);
  REQUIRE(edges[0]["waited_s"] == 0.0);
  REQUIRE(edges[1]["peer"] == 2);
  REQUIRE(edges[1]["share"].get<double>() == Approx(0.25));
}

TEST_CASE("findings give the result, the end and the waits") {
  MadeRun made(2);
  for (const int rank : {0, 1}) {
    made.line(rank, "epoch", 8,
              {{"epoch", 2},
               {"step", 40},
               {"loss", 0.5},
               {"samples_per_second", 100},
               {"phases", {{"step", 6}, {"wait", 2}}},
               {"waits", {{"0", rank == 1 ? 2 : 0}}}});
  }
  made.line(0, "end", 10, {{"test_accuracy", 0.875}, {"lost", {1}}});
  const auto text = findings(made.done());
  REQUIRE(text.size() == 3);
  REQUIRE(text[0] ==
          "After 2 epochs in 10.0 s: test accuracy of the mean model 87.5 %, training loss 0.5.");
  REQUIRE(text[1] == "1 of 2 workers finished. Lost: worker 1.");
  REQUIRE(text[2] ==
          "Workers spent 25.0 % of their time waiting. They waited the longest for worker 0: 2.00 "
          "s in all.");
  REQUIRE(*summarize(made.run).samples_per_second == Approx(200));
}

TEST_CASE("options that are equal in all runs are left out of the comparison") {
  Run a = run_of(2, "ring"), b = run_of(2, "torus2d");
  set_option(b, "seed", "7");
  const auto table = differences({a, b}, {"a", "b"});
  REQUIRE(table == std::vector<std::vector<std::string>>{
                       {"Option", "a", "b"}, {"seed", "–", "7"}, {"topology", "ring", "torus2d"}});
}

TEST_CASE("curves of several runs have the names of the runs") {
  MadeRun a(1), b(1);
  a.line(0, "epoch", 1, {{"epoch", 1}, {"step", 10}, {"loss", 3}});
  b.line(0, "epoch", 1, {{"epoch", 1}, {"step", 20}, {"loss", 4}});
  const json rows = joint_means({a.done(), b.done()}, {"a", "b"}, "loss");
  REQUIRE(rows.size() == 2);
  REQUIRE(rows[0]["measure"] == "a");
  REQUIRE(rows[1]["measure"] == "b");
  REQUIRE(rows[1]["rounds"].get<double>() == Approx(20));
}

TEST_CASE("a comparison has no column of which nothing is known") {
  const auto table = comparison({run_of(2, "ring"), run_of(3, "ring")}, {"a", "b"});
  REQUIRE(table.size() == 3);
  for (const auto& line : table) REQUIRE(line.size() == table[0].size());
  REQUIRE(std::count(table[0].begin(), table[0].end(), "Test accuracy") == 0);
  REQUIRE(std::count(table[0].begin(), table[0].end(), "Workers") == 1);
}
