// The C interface as its users see it.
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "c/programs.hpp"
#include "data/options/rows.hpp"
#include "support/catch.hpp"
#include "train/options/rows.hpp"
#include "worker/worker_options.hpp"

using namespace c_test;

TEST_CASE("two workers of different weights take their mean") {
  const fast_status status = run_local(2, [](fast_group* group) {
    const int rank = fast_group_rank(group);
    std::vector<double> weights{1.0 * rank, 10, -3.0 * rank};
    const std::int64_t shape[] = {3};
    const fast_tensor view = tensor("w", weights.data(), shape, 1, FAST_F64);
    Options options;
    options.set("initial", "as_is");
    options.set("deadline", "30");
    options.set("suspect_after", fast_group_rank(group) == 0 ? "auto" : "2.5");
    fast_worker* worker = nullptr;
    if (fast_worker_create(group, "complete", &view, 1, options.handle, &worker) != FAST_OK)
      return 1;
    fast_worker_begin_round(worker);
    if (fast_worker_end_round(worker, 0, 0) != FAST_OK) return 2;
    if (weights != std::vector<double>{0.5, 10, -1.5}) return 3;
    if (fast_worker_round(worker) != 1 || fast_worker_size(worker) != 2 ||
        fast_worker_rank(worker) != rank)
      return 4;
    fast_stats stats{};
    stats.struct_size = sizeof stats;
    if (fast_worker_stats(worker, &stats) != FAST_OK || stats.rounds != 1 || stats.reads != 1)
      return 5;
    if (fast_worker_await_finish(worker) != FAST_OK) return 6;
    std::vector<double> mean(3);
    const fast_tensor out = tensor("w", mean.data(), shape, 1, FAST_F64);
    double distance = -1;
    if (fast_worker_mean_model(worker, &out, 1) != FAST_OK || mean != weights) return 7;
    if (fast_worker_consensus_distance(worker, &distance) != FAST_OK || distance != 0) return 8;
    fast_worker_free(worker);
    return 0;
  });
  INFO(fast_last_error());
  CHECK(status == FAST_OK);
}

TEST_CASE("a callback that fails ends all workers, and its number is told") {
  std::atomic<int> peers_told{0};
  const fast_status status = run_local(3, [&](fast_group* group) {
    float weight = 1;
    const std::int64_t shape[] = {1};
    const fast_tensor view = tensor("w", &weight, shape, 1);
    Options options;
    options.set("deadline", "30");
    fast_worker* worker = nullptr;
    if (fast_worker_create(group, "ring", &view, 1, options.handle, &worker) != FAST_OK) return 1;
    fast_status found = FAST_OK;
    int rank = fast_group_rank(group);
    for (int round = 0; round < 50 && found == FAST_OK; ++round) {
      struct Step {
        int rank, round;
      } step{rank, round};
      found = fast_worker_step(
          worker,
          [](void* user, double* loss) {
            const auto* s = static_cast<const Step*>(user);
            *loss = 1;
            return s->rank == 1 && s->round == 7 ? 42 : 0;
          },
          &step, 0, nullptr);
    }
    if (found == FAST_ERROR_PEER_FAILED) ++peers_told;
    const bool expected = found == (rank == 1 ? FAST_ERROR_CALLBACK : FAST_ERROR_PEER_FAILED);
    fast_worker_free(worker);
    return expected ? 5 : 6;
  });
  CHECK(status == FAST_ERROR_CALLBACK);
  CHECK(peers_told == 2);
  CHECK_THAT(fast_last_error(), ContainsSubstring("worker 1's function returned 5: ") &&
                                    ContainsSubstring("returned 42"));
}

TEST_CASE("a loss that is not finite fails the worker") {
  const fast_status status = run_local(2, [](fast_group* group) {
    float weight = 1;
    const std::int64_t shape[] = {1};
    const fast_tensor view = tensor("w", &weight, shape, 1);
    fast_worker* worker = nullptr;
    if (fast_worker_create(group, "ring", &view, 1, nullptr, &worker) != FAST_OK) return 1;
    fast_worker_begin_round(worker);
    const double loss = fast_group_rank(group) == 0 ? std::nan("") : 1;
    const fast_status found = fast_worker_end_round(worker, loss, 0);
    fast_worker_free(worker);
    return found == FAST_OK ? 0 : 3;
  });
  CHECK(status == FAST_ERROR_CALLBACK);
  CHECK_THAT(fast_last_error(), ContainsSubstring("the loss of worker 0 in round 0 is nan"));
}

TEST_CASE("a model behind callbacks passes the suite of adapters, and is freed") {
  const std::int64_t shape[] = {16};
  const char* report = nullptr;
  const fast_status status = fast_check_backend(
      [](void*, std::uint64_t seed, fast_backend** backend) {
        *backend = make_regression(16, 4, seed);
        return *backend == nullptr ? 1 : 0;
      },
      nullptr, shape, 1, 4, &report);
  INFO(report);
  CHECK(status == FAST_OK);
  CHECK_THAT(report, ContainsSubstring("regression in C: 21 checks, 0 failures"));
  CHECK(Regression::alive == 0);
}

TEST_CASE("the suite's failures come with the report") {
  const std::int64_t shape[] = {16};
  CHECK(fast_check_backend([](void*, std::uint64_t, fast_backend**) { return 9; }, nullptr, shape,
                           1, 4, nullptr) == FAST_ERROR_ARGUMENT);
  CHECK_THAT(fast_last_error(), ContainsSubstring("FAILED") && ContainsSubstring("returned 9"));
}

TEST_CASE("bad tensors, names and handles are refused in one line") {
  const auto create = [](const fast_tensor* tensors, std::size_t count, const char* name = nullptr,
                         const char* value = "", const char* topology = "ring") {
    return run_local(1, [&](fast_group* group) {
      Options options;
      if (name != nullptr) options.set(name, value);
      fast_worker* worker = nullptr;
      const fast_status status =
          fast_worker_create(group, topology, tensors, count, options.handle, &worker);
      fast_worker_free(worker);
      return static_cast<int>(status);
    });
  };
  float values[12] = {};
  const std::int64_t shape[] = {3, 4}, transposed[] = {1, 3}, none[] = {0};
  const fast_tensor good = tensor("w", values, shape, 2);
  CHECK(create(&good, 1) == FAST_OK);
  const auto refused = [&](const char* text, auto&&... arguments) {
    CHECK(create(arguments...) == FAST_ERROR_CALLBACK);
    CHECK_THAT(fast_last_error(), ContainsSubstring(text));
  };
  refused("the model has none", &good, std::size_t{0});
  fast_tensor bad = good;
  bad.strides = transposed;
  refused("strides [1, 3]", &bad, std::size_t{1});
  bad = tensor("w", values, none, 1);
  refused("has no elements", &bad, std::size_t{1});
  bad = tensor(nullptr, values, shape, 2);
  refused("name is NULL", &bad, std::size_t{1});
  bad = tensor("w", values, shape, 2, static_cast<fast_dtype>(77));
  refused("dtype 77", &bad, std::size_t{1});
  const fast_tensor twice[] = {good, tensor("w", values, shape, 2)};
  refused("two tensors are named \"w\"", twice, std::size_t{2});
  const fast_tensor overlapping[] = {good, tensor("v", values + 6, shape + 1, 1)};
  refused("overlap in memory", overlapping, std::size_t{2});
  refused("option \"speed\" is unknown; choose algorithm,", &good, std::size_t{1}, "speed", "1");
  refused("\"soon\"; a positive finite number of seconds, or auto is required", &good,
          std::size_t{1}, "suspect_after", "soon");
  refused("did you mean \"staleness\"?", &good, std::size_t{1}, "stalenes", "1");
  refused("option staleness: \"old\"", &good, std::size_t{1}, "staleness", "old");
  refused("option \"period\" is unknown", &good, std::size_t{1}, "algorithm.period", "3");
  refused("klein", &good, std::size_t{1}, nullptr, "", "klein");

  CHECK(fast_worker_begin_round(nullptr) == FAST_ERROR_ARGUMENT);
  CHECK_THAT(fast_last_error(), ContainsSubstring("worker is NULL"));
  CHECK(fast_run_local(
            0, [](fast_group*, void*) { return 0; }, nullptr) == FAST_ERROR_ARGUMENT);
  CHECK(std::string(fast_status_name(FAST_ERROR_DEADLINE)) == "deadline");
  CHECK(std::string(fast_status_name(static_cast<fast_status>(99))) == "unknown");
  CHECK(std::string(fast_version()).find('.') == 1);
  fast_worker_free(nullptr);
  fast_backend_free(nullptr);
}

TEST_CASE("a backend that lacks a function is refused, and what it owns is freed") {
  fast_backend_functions lacking = functions;
  lacking.evaluate = nullptr;
  fast_backend* backend = nullptr;
  CHECK(fast_backend_create(&lacking, new Regression(2, 2, 1), nullptr, 0, &backend) ==
        FAST_ERROR_ARGUMENT);
  CHECK_THAT(fast_last_error(), ContainsSubstring("functions->evaluate is NULL"));
  CHECK(Regression::alive == 0);
  fast_backend_functions older = functions;  // of a header without the last two
  older.struct_size = offsetof(fast_backend_functions, correct_in_step);
  older.evaluate = nullptr;
  CHECK(fast_backend_create(&older, new Regression(2, 2, 1), nullptr, 0, &backend) ==
        FAST_ERROR_ARGUMENT);
  CHECK_THAT(fast_last_error(), ContainsSubstring("functions->evaluate is NULL"));
  CHECK(Regression::alive == 0);
  lacking.struct_size = 8;
  CHECK(fast_backend_create(&lacking, nullptr, nullptr, 0, &backend) == FAST_ERROR_ARGUMENT);
  CHECK_THAT(fast_last_error(), ContainsSubstring("struct_size is 8"));
}

TEST_CASE("every option of a worker can be set by its name") {
  fast::WorkerOptions worker;
  fast::options::OptionTable table;
  fast::add_rows(table, worker);
  REQUIRE(table.rows().size() > 10);
  for (const fast::options::OptionSpec& row : table.rows()) {
    INFO(row.name);
    const fast_status status = run_local(1, [&](fast_group* group) {
      float weight = 1;
      const std::int64_t shape[] = {1};
      const fast_tensor view = tensor("w", &weight, shape, 1);
      Options options;
      options.set(row.name.c_str(), row.text().c_str());
      fast_worker* made = nullptr;
      const fast_status created =
          fast_worker_create(group, "ring", &view, 1, options.handle, &made);
      fast_worker_free(made);
      return static_cast<int>(created);
    });
    CHECK(status == FAST_OK);
  }
}

TEST_CASE("a worker of C is a site by its settings") {
  const auto error_of = [](const std::vector<std::pair<const char*, const char*>>& settings) {
    const fast_status status = run_local(1, [&](fast_group* group) {
      float weight = 1;
      const std::int64_t shape[] = {1};
      const fast_tensor view = tensor("w", &weight, shape, 1);
      Options options;
      for (const auto& [name, value] : settings) options.set(name, value);
      fast_worker* made = nullptr;
      return static_cast<int>(fast_worker_create(group, "ring", &view, 1, options.handle, &made));
    });
    CHECK(status != FAST_OK);
    return std::string(fast_last_error());
  };
  const char* nobody = "nats://127.0.0.1:1/run";  // there is no server
  CHECK_THAT(error_of({{"site", "oslo"}}), ContainsSubstring("address of a server"));
  CHECK_THAT(error_of({{"site_url", nobody}}), ContainsSubstring("no site"));
  CHECK_THAT(error_of({{"site", "oslo"}, {"site_url", nobody}, {"site_algorithm.rat", "1"}}),
             ContainsSubstring("rat"));
  const std::string error = error_of({{"site", "oslo"}, {"site_url", nobody}});
  CHECK_THAT(error, ContainsSubstring("127.0.0.1:1") || ContainsSubstring("libnats"));
}

namespace {

/// The error of a run that has no data.
std::string error_without_data(const std::string& name, const std::string& value) {
  const fast_status status = run_local(1, [&](fast_group* group) {
    fast_backend* backend = make_regression(16, 4, 1);
    Options options;
    options.set(name.c_str(), value.c_str());
    const char* summary = nullptr;
    const fast_status trained =
        fast_train(group, "ring", backend, "/nowhere", options.handle, &summary);
    fast_backend_free(backend);
    return static_cast<int>(trained);
  });
  CHECK(status != FAST_OK);
  return fast_last_error();
}

}  // namespace

TEST_CASE("a training run takes every option of its data and of the library's tables") {
  fast::train::TrainerOptions trainer;
  fast::data::LoadOptions load;
  fast::options::OptionTable table;
  fast::train::add_rows(table, trainer);
  fast::data::add_rows(table, load);
  fast::data::add_limit(table, load);
  for (const fast::options::OptionSpec& row : table.rows()) {
    if (row.values().empty()) continue;
    INFO(row.name);
    CHECK_THAT(error_without_data(row.name, row.text()), ContainsSubstring("/nowhere"));
  }
  for (const char* progress : {"0", "1", "false", "true", "lines"}) {
    CHECK_THAT(error_without_data("progress", progress), ContainsSubstring("/nowhere"));
  }
  for (const char* rate : {"learning_rate", "lr"}) {
    CHECK_THAT(error_without_data(rate, "0.1"), ContainsSubstring("/nowhere"));
  }
  CHECK_THAT(error_without_data("target_type", "clases"), ContainsSubstring("\"classes\"?"));
  CHECK_THAT(error_without_data("resize", "model"), ContainsSubstring("there is no model here"));
}

TEST_CASE("a round in two halves hands the learning rate to the rule") {
  const auto end = [](double learning_rate) {
    return run_local(1, [&](fast_group* group) {
      float weight = 1;
      const std::int64_t shape[] = {1};
      const fast_tensor view = tensor("w", &weight, shape, 1);
      Options options;
      options.set("algorithm", "decentlam");
      fast_worker* worker = nullptr;
      if (fast_worker_create(group, "ring", &view, 1, options.handle, &worker) != FAST_OK) return 1;
      fast_worker_begin_round(worker);
      const fast_status status = fast_worker_end_round(worker, 0.5, learning_rate);
      fast_worker_free(worker);
      return static_cast<int>(status);
    });
  };
  CHECK(end(0.1) == FAST_OK);
  CHECK(end(0) == FAST_ERROR_CALLBACK);
  CHECK_THAT(fast_last_error(), ContainsSubstring("divides by the learning rate, which is 0"));
}

namespace {

/// A worker of two that begins with its rank as its only weight.
struct OneWeight {
  explicit OneWeight(fast_group* group) : weight(fast_group_rank(group)) {
    Options options;
    options.set("initial", "as_is");
    options.set("deadline", "30");
    const fast_tensor view = view_of(weight);
    created = fast_worker_create(group, "complete", &view, 1, options.handle, &worker);
  }
  ~OneWeight() { fast_worker_free(worker); }
  OneWeight(const OneWeight&) = delete;
  OneWeight& operator=(const OneWeight&) = delete;

  static fast_tensor view_of(double& value) {
    static const std::int64_t shape[] = {1};
    return tensor("w", &value, shape, 1, FAST_F64);
  }
  bool makes_round() const {
    return fast_worker_begin_round(worker) == FAST_OK &&
           fast_worker_end_round(worker, 0, 0) == FAST_OK;
  }
  bool rebinds(double& to) const {
    const fast_tensor view = view_of(to);
    return fast_worker_rebind(worker, &view, 1) == FAST_OK;
  }

  double weight;
  fast_status created = FAST_OK;
  fast_worker* worker = nullptr;
};

}  // namespace

TEST_CASE("weights that were changed by hand are averaged when they have been republished") {
  const fast_status status = run_local(2, [](fast_group* group) {
    OneWeight one(group);
    if (one.created != FAST_OK || !one.makes_round()) return 1;
    if (one.weight != 0.5) return 2;
    one.weight = fast_group_rank(group) == 0 ? 2 : 6;
    if (fast_worker_republish(one.worker) != FAST_OK) return 3;
    if (!one.makes_round()) return 4;
    return one.weight == 4 ? 0 : 5;
  });
  INFO(fast_last_error());
  CHECK(status == FAST_OK);
  CHECK(fast_worker_republish(nullptr) == FAST_ERROR_ARGUMENT);
}

TEST_CASE("a worker goes on in the memory that it is rebound to") {
  const fast_status status = run_local(2, [](fast_group* group) {
    OneWeight one(group);
    if (one.created != FAST_OK || !one.makes_round()) return 1;
    double moved = one.weight - fast_group_rank(group);  // 0.5 and -0.5
    one.weight = 99;
    if (!one.rebinds(moved)) return 2;
    // The messages in force are 0.5 on both workers, so the steps are averaged a round later.
    if (!one.makes_round() || moved != 0.5 - fast_group_rank(group)) return 3;
    if (!one.makes_round() || moved != 0 || one.weight != 99) return 4;
    float other = 0;
    const std::int64_t shape[] = {1};
    const fast_tensor wrong = tensor("w", &other, shape, 1);
    if (fast_worker_rebind(one.worker, &wrong, 1) != FAST_ERROR_MISMATCH) return 5;
    return one.makes_round() ? 0 : 6;
  });
  INFO(fast_last_error());
  CHECK(status == FAST_OK);
  CHECK(fast_worker_rebind(nullptr, nullptr, 0) == FAST_ERROR_ARGUMENT);
}

TEST_CASE("a worker that finishes publishes its last weights, and makes no round afterwards") {
  const fast_status status = run_local(2, [](fast_group* group) {
    OneWeight one(group);
    if (one.created != FAST_OK || !one.makes_round()) return 1;
    one.weight = fast_group_rank(group) == 0 ? 10 : 20;
    for (int again = 0; again < 2; ++again) {
      if (fast_worker_finish(one.worker) != FAST_OK) return 2;
    }
    const std::string expected = "begin_round() was called after finish(); make a new Worker";
    if (fast_worker_begin_round(one.worker) != FAST_ERROR_ARGUMENT) return 3;
    if (std::string(fast_last_error()).find(expected) == std::string::npos) return 4;
    if (fast_worker_await_finish(one.worker) != FAST_OK) return 5;
    double mean = 0;
    const fast_tensor out = OneWeight::view_of(mean);
    if (fast_worker_mean_model(one.worker, &out, 1) != FAST_OK) return 6;
    return mean == 15 ? 0 : 7;
  });
  INFO(fast_last_error());
  CHECK(status == FAST_OK);
  CHECK(fast_worker_finish(nullptr) == FAST_ERROR_ARGUMENT);
}
