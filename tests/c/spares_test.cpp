// Spares and growth through the C interface.
#include <chrono>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "c/handles.hpp"
#include "c/programs.hpp"
#include "c/tasks.hpp"
#include "exchange/open_coordinator.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace c_test;

namespace {

constexpr int founders = 2, most_rounds = 20000, rounds_together = 400;
constexpr double rate = 0.1;

/// What the workers of a run end with.
struct Ends {
  std::mutex mutex;
  std::vector<double> weights;
  int idle = 0;
};

void request_growth(const fast_group* group) {
  fast::exchange::members_of(group->group)->growth().request();
}

/// Worker k pulls its weight to 10 k. With one growth, the mean of all three workers' targets is
/// 10; without, that of both is 5.
int train_growing(fast_group* group, fast_worker* worker, double& weight, bool asks) {
  int together = 0;
  while (fast_worker_round(worker) < most_rounds && together < rounds_together) {
    if (asks && fast_worker_round(worker) == 20) request_growth(group);
    if (fast_worker_begin_round(worker) != FAST_OK) return 10;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    weight += rate * (10.0 * fast_worker_rank(worker) - weight);
    if (fast_worker_end_round(worker, 0, 0) != FAST_OK) return 11;
    together += fast_worker_size(worker) > founders ? 1 : 0;
  }
  return fast_worker_await_finish(worker) == FAST_OK ? 0 : 12;
}

int grow_in_c(fast_group* everyone, bool allowed, Ends& ends) {
  fast_group* group = nullptr;
  if (fast_group_with_spares(everyone, 1, &group) != FAST_OK) return 1;
  const bool asks = fast_group_rank(everyone) == 0;
  double weight = 0;
  const std::int64_t shape[] = {1};
  const fast_tensor view = tensor("w", &weight, shape, 1, FAST_F64);
  Options options;
  options.set("deadline", "60");
  options.set("suspect_after", "30");
  fast_worker* worker = nullptr;
  if (fast_worker_create(group, "complete", &view, 1, options.handle, &worker) != FAST_OK) return 2;
  if (allowed && fast_worker_allow_growth(worker, 0, 1) != FAST_OK) return 3;
  const int result = allowed ? train_growing(group, worker, weight, asks)
                             : (fast_worker_await_finish(worker) == FAST_OK ? 0 : 4);
  if (result != 0) return result;
  double mean = 0;
  const fast_tensor out = tensor("w", &mean, shape, 1, FAST_F64);
  const bool has_seat = fast_group_has_seat(group) == 1;
  if (has_seat && fast_worker_mean_model(worker, &out, 1) != FAST_OK) return 5;
  std::vector<int> joined(4, -1);
  std::size_t count = 9, replaced = 9;
  if (fast_group_joined(group, joined.data(), joined.size(), &count) != FAST_OK) return 6;
  if (fast_group_replaced(group, nullptr, 0, &replaced) != FAST_OK || replaced != 0) return 7;
  if (count != (allowed ? 1 : 0) || joined[0] != (allowed ? founders : -1)) return 8;
  if (count > 0 && fast_group_give_up(group) != FAST_OK) return 9;
  {
    const std::lock_guard lock(ends.mutex);
    has_seat ? ends.weights.push_back(mean) : static_cast<void>(++ends.idle);
  }
  fast_worker_free(worker);
  fast_group_free(group);
  return 0;
}

/// t = 2 x + 1 at 60 places.
std::string line_table(const fast::testing::TemporaryDirectory& directory) {
  const std::string table = (directory.path() / "line.csv").string();
  std::ofstream csv(table);
  csv << "x,t\n";
  for (int i = 0; i < 60; ++i) csv << i / 30.0 << ',' << 2 * (i / 30.0) + 1 << '\n';
  return table;
}

int train_with_spare(fast_group* everyone, const std::string& table, Line& line) {
  fast_group* group = nullptr;
  if (fast_group_with_spares(everyone, 1, &group) != FAST_OK) return 1;
  const bool is_spare = fast_group_rank(everyone) == founders;
  const TaskBackend<Line> backend(line, line.weights);
  Options options;
  options.set("deadline", "60");
  options.set("suspect_after", "30");
  options.set("target", "t");
  options.set("target_type", "numbers");
  options.set("test_share", "0.2");
  options.set("epochs", "40");
  options.set("batch_size", "4");
  const char* summary = nullptr;
  if (fast_train(group, "complete", backend.handle, table.c_str(), options.handle, &summary) !=
      FAST_OK) {
    return 2;
  }
  if (fast_group_has_seat(group) != (is_spare ? 0 : 1)) return 3;
  if (std::string_view(summary).empty() != is_spare) return 4;
  fast_group_free(group);
  return 0;
}

}  // namespace

TEST_CASE("a spare joins a program in C, and the mean goes to the optimum of all") {
  Ends ends;
  const fast_status status = run_local(
      founders + 1, [&](fast_group* everyone) { return grow_in_c(everyone, true, ends); });
  INFO(fast_last_error());
  REQUIRE(status == FAST_OK);
  REQUIRE(ends.weights.size() == 3);
  for (const double mean : ends.weights) CHECK(mean == Approx(10).margin(1e-6));
}

TEST_CASE("a spare in C that is not needed has no seat") {
  Ends ends;
  const fast_status status = run_local(
      founders + 1, [&](fast_group* everyone) { return grow_in_c(everyone, false, ends); });
  INFO(fast_last_error());
  REQUIRE(status == FAST_OK);
  CHECK(ends.weights.size() == 2);
  CHECK(ends.idle == 1);
}

TEST_CASE("fast_train() with a spare that is not needed trains the workers, which all end alike") {
  const fast::testing::TemporaryDirectory directory;
  const std::string table = line_table(directory);
  std::vector<Line> lines(founders + 1, {{0, 0}});
  const fast_status status = run_local(founders + 1, [&](fast_group* everyone) {
    return train_with_spare(everyone, table,
                            lines[static_cast<std::size_t>(fast_group_rank(everyone))]);
  });
  INFO(fast_last_error());
  REQUIRE(status == FAST_OK);
  CHECK(lines[0].weights == lines[1].weights);
  CHECK(lines[0].weights[0] > 0);
  CHECK(lines[founders].weights == std::vector<float>{0, 0});
}

TEST_CASE("calls for spares refuse what is no group, and too many spares") {
  CHECK(fast_group_has_seat(nullptr) == -1);
  CHECK(fast_launcher_spares() == 0);
  CHECK(fast_group_give_up(nullptr) == FAST_ERROR_ARGUMENT);
  CHECK(fast_worker_allow_growth(nullptr, 0, 1) == FAST_ERROR_ARGUMENT);
  std::size_t count = 0;
  CHECK(fast_group_joined(nullptr, nullptr, 0, &count) == FAST_ERROR_ARGUMENT);
  const fast_status status = run_local(1, [](fast_group* everyone) {
    fast_group* group = nullptr;
    std::size_t found = 0;
    if (fast_group_joined(everyone, nullptr, 3, &found) != FAST_ERROR_ARGUMENT) return 1;
    if (fast_group_has_seat(everyone) != 1) return 2;
    if (fast_group_with_spares(everyone, 1, &group) != FAST_ERROR_ARGUMENT) return 3;
    return std::string_view(fast_last_error()).starts_with("spares: 1 of 1 ranks") ? 0 : 4;
  });
  CHECK(status == FAST_OK);
}
