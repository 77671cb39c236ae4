#include "train/record/worker_reports.hpp"

#include <fast/exchange/local.hpp>

#include <mutex>

#include "support/catch.hpp"

using namespace fast;
using train::Report;

namespace {

Report report_of(double loop_s, double rounds, double accuracy) {
  Report report{};
  report.loop_s = loop_s;
  report.worker.wait_s = 1;
  report.rounds = rounds;
  report.bytes_per_round = 2 * rounds;
  report.samples = 1000;
  report.worker.reads = 10;
  report.worker.fresh_reads = 5;
  report.worker.messages_sent = 3;
  report.worker.messages_held = 1;
  report.replica_accuracy = accuracy;
  report.mean_model_correct = 30;
  report.mean_model_loss_sum = 12;
  report.mean_model_samples = 40;  // 10 of 50 cannot be read
  return report;
}

}  // namespace

TEST_CASE("a summary has the slowest worker's time, the worst replica and means of shares") {
  train::Summary summary;
  train::add_up({report_of(2, 50, 0.5), report_of(4, 60, 0.75)}, 100, summary);
  CHECK(summary.seconds == 4);
  CHECK(summary.rounds == 60);
  CHECK(summary.samples_per_second == 2000.0 / 4);
  CHECK(summary.test_accuracy_worst_worker == 0.5);
  CHECK(summary.test_accuracy_mean_model == Approx(0.6));
  CHECK(summary.test_loss_mean_model == Approx(24.0 / 80));
  CHECK(summary.wait_fraction == Approx((0.5 + 0.25) / 2));
  CHECK(summary.bytes_sent_per_worker_per_round == Approx((100 + 120) / 2));
  CHECK(summary.fresh_fraction == 0.5);
  CHECK(summary.sent_fraction == 0.75);
}

TEST_CASE("what was kept of a worker adds up over its readers, also of gathered reports") {
  std::mutex mutex;
  local::run(2, [&](const Group& group) {
    Report mine = report_of(1, 1, 1);
    mine.worker.healed = 7;
    mine.worker.shares = {{2, 10 + 20 * group.rank(), 4, group.rank() == 0 ? 1.0 : 0.5}};
    if (group.rank() == 1) mine.worker.shares.push_back({5, 3, 3, 0});
    train::Summary summary;
    train::add_up(train::gather(group, Deadline(Seconds(30)), mine), 6, summary);
    const std::lock_guard lock(mutex);
    CHECK(summary.healed == 14);
    CHECK(summary.fresh_fraction == 0.5);
    REQUIRE(summary.shares.size() == 2);
    CHECK(summary.shares[0].worker == 2);
    CHECK(summary.shares[0].reads == 40);
    CHECK(summary.shares[0].clipped == 8);
    CHECK(summary.shares[0].kept == Approx((10 + 30 * 0.5) / 40));
    CHECK(summary.shares[1].kept == 0);
  });
}

TEST_CASE("a worker that makes no step has no shares of time") {
  Report report = report_of(1e-6, 50, 0.5);
  report.samples = 0;
  report.worker.publish_s = report.worker.mix_s = 1;
  train::Summary summary;
  train::add_up({report}, 100, summary);
  CHECK(summary.wait_fraction == 0);
  CHECK(summary.publish_fraction == 0);
  CHECK(summary.mix_fraction == 0);
}

TEST_CASE("measures of parts add up, and the worst worker is that of the worst value") {
  using Form = fast::Measure::Form;
  Report first = report_of(1, 1, 0), second = first;
  first.mean_model = {{"mae", Form::mean, {4, 2}}, {"auc", Form::share, {1, 2}}};
  second.mean_model = {{"mae", Form::mean, {2, 4}}, {"auc", Form::share, {4, 4}}};
  first.replica = {{"mae", Form::mean, {5, 1}}, {"auc", Form::share, {1, 1}}};
  second.replica = {{"mae", Form::mean, {3, 1}}, {"auc", Form::share, {0, 1}}};
  train::Summary summary;
  train::add_up({first, second}, 6, summary);
  REQUIRE(summary.measures.size() == 2);
  CHECK(summary.measures[0].mean_model == 1);
  CHECK(summary.measures[0].worst_worker == 5);
  CHECK(summary.measures[1].mean_model == Approx(5.0 / 6));
  CHECK(summary.measures[1].worst_worker == 0);
}

TEST_CASE("measures of all workers are gathered, also of one without test samples") {
  using Form = fast::Measure::Form;
  std::mutex mutex;
  local::run(3, [&](const Group& group) {
    Report mine = report_of(group.rank(), 1, 1);
    if (group.rank() != 1) mine.mean_model = {{"mae", Form::mean, {1.0 + group.rank(), 2}}};
    mine.replica = {{"mae", Form::mean, {10.0 * group.rank(), 1}}};
    const auto all = train::gather(group, Deadline(Seconds(30)), mine);
    const std::lock_guard lock(mutex);
    REQUIRE(all.size() == 3);
    CHECK(all[0].mean_model.at(0).sums == std::vector<double>{1, 2});
    CHECK(all[1].mean_model.empty());
    CHECK(all[2].mean_model.at(0).sums == std::vector<double>{3, 2});
    CHECK(all[2].replica.at(0).value() == 20);
  });
}

TEST_CASE("measures of parts are told apart by name, also in another order and where one lacks") {
  using Form = fast::Measure::Form;
  const fast::Measure recall{"recall", Form::share, {1, 4}}, mae{"mae", Form::mean, {6, 2}},
      none{"recall", Form::share, {0, 1}};
  std::mutex mutex;
  local::run(3, [&](const Group& group) {
    Report mine = report_of(1, 1, 1);
    // The samples of worker 0 begin with another class than those of worker 1; worker 2 has one.
    mine.mean_model = std::vector<std::vector<Measure>>{{mae, recall}, {recall, mae}, {mae}}.at(
        static_cast<std::size_t>(group.rank()));
    mine.replica = {group.rank() == 0 ? none : recall, mae};
    train::Summary summary;
    train::add_up(train::gather(group, Deadline(Seconds(30)), mine), 6, summary);
    const std::lock_guard lock(mutex);
    REQUIRE(summary.measures.size() == 2);
    CHECK(summary.measures[0].name == "recall");
    CHECK(summary.measures[0].mean_model == 2.0 / 8);
    CHECK(summary.measures[0].worst_worker == 0);
    CHECK(summary.measures[1].name == "mae");
    CHECK(summary.measures[1].mean_model == 18.0 / 6);
    CHECK(summary.measures[1].worst_worker == 3);
  });
}

TEST_CASE("workers of different backends have the accuracy in common") {
  using Form = fast::Measure::Form;
  std::mutex mutex;
  local::run(3, [&](const Group& group) {
    Report mine = report_of(group.rank(), 1, 1);
    if (group.rank() == 1)
      mine.mean_model =
          mine.replica = {{"accuracy", Form::share, {1, 2}}, {"top5", Form::share, {1, 2}}};
    const auto all = train::gather(group, Deadline(Seconds(30)), mine);
    const std::lock_guard lock(mutex);
    for (std::size_t r = 0; r < 3; ++r) {
      CHECK(all[r].loop_s == static_cast<double>(r));
      CHECK(all[r].mean_model.empty());
      CHECK(all[r].replica.empty());
    }
  });
}

TEST_CASE("all workers gather the same reports, by rank") {
  std::mutex mutex;
  local::run(3, [&](const Group& group) {
    const auto all = train::gather(group, Deadline(Seconds(30)), report_of(group.rank(), 1, 1));
    const std::lock_guard lock(mutex);
    REQUIRE(all.size() == 3);
    for (std::size_t r = 0; r < 3; ++r) CHECK(all[r].loop_s == static_cast<double>(r));
  });
}
