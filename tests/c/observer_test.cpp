// What callbacks of the C interface are told: what a C++ observer of the same run is told.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "c/event_lines.h"
#include "c/handles.hpp"
#include "c/programs.hpp"
#include "observe/trace_files.hpp"
#include "support/catch.hpp"
#include "support/idx_files.hpp"
#include "support/temporary_directory.hpp"

using namespace c_test;

namespace {

using Lines = std::vector<std::string>;

std::int64_t ns(fast::Clock::time_point at) { return at.time_since_epoch().count(); }
static_assert(std::is_same_v<fast::Clock::duration, std::chrono::nanoseconds>);

/// The same lines as those of event_lines.c.
class LineObserver final : public fast::Observer {
 public:
  void on_phase(const fast::PhaseEvent& e) noexcept override {
    keep(fmt::format("phase {} worker {} peer {} round {} from {} to {}", fast::name(e.phase),
                     e.worker, e.peer, e.round, ns(e.began), ns(e.ended)));
  }
  void on_message(const fast::MessageEvent& e) noexcept override {
    const bool read = e.kind == fast::MessageEvent::Kind::read;
    keep(fmt::format("{} worker {} from {} fresh {:d} sequence {} round {} age {} at {}",
                     read ? "read" : "published", e.worker, e.from, e.fresh, e.sequence, e.round,
                     e.age, ns(e.at)));
  }
  void on_peer(const fast::PeerEvent& e) noexcept override {
    keep(fmt::format("{} worker {} peer {} round {} at {}", fast::name(e.kind), e.worker, e.peer,
                     e.round, ns(e.at)));
  }
  void on_scalar(const fast::ScalarEvent& e) noexcept override {
    keep(fmt::format("scalar {} value {:.9g} worker {} round {} at {}", e.name, e.value, e.worker,
                     e.round, ns(e.at)));
  }
  void on_milestone(const fast::MilestoneEvent& e) noexcept override {
    keep(fmt::format("{} text \"{}\" worker {} epoch {} round {} from {} to {}", fast::name(e.kind),
                     e.text, e.worker, e.epoch, e.round, ns(e.began), ns(e.ended)));
  }
  void on_values(const fast::ValuesEvent& e) noexcept override {
    keep(fmt::format("values {} count {} first {:.9g} worker {} epoch {} round {}", e.name,
                     e.values.size(), e.values[0], e.worker, e.epoch, e.round));
  }

  Lines sorted() {
    std::ranges::sort(lines_);
    return lines_;
  }

 private:
  void keep(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::mutex mutex_;
  Lines lines_;
};

/// The observer in C beside the one in C++, of all workers of a run.
struct Both {
  Both() { REQUIRE(event_lines_observe(lines, &observer) == FAST_OK); }
  ~Both() {
    fast_observer_free(observer);
    event_lines_free(lines);
  }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;

  static void attach(fast_options* options, void* self) {
    options->observers.push_back(static_cast<Both*>(self)->theirs);
  }
  Lines sorted() const {
    Lines all;
    for (std::size_t i = 0; i < event_lines_count(lines); ++i) {
      all.emplace_back(event_lines_at(lines, i));
    }
    std::ranges::sort(all);
    return all;
  }

  event_lines* lines = event_lines_create();
  fast_observer* observer = nullptr;
  std::shared_ptr<LineObserver> theirs = std::make_shared<LineObserver>();
};

std::size_t count_of(const Lines& lines, std::string_view beginning) {
  return static_cast<std::size_t>(std::ranges::count_if(
      lines, [&](const std::string& line) { return line.starts_with(beginning); }));
}

/// 40 training samples of 2x2 pixels and 10 of a test.
void write_samples(const fast::testing::TemporaryDirectory& directory) {
  using namespace fast::testing;
  write_plain(directory / "train-images-idx3-ubyte", idx_images(40, 2, 2));
  write_plain(directory / "train-labels-idx1-ubyte", idx_labels(40));
  write_plain(directory / "t10k-images-idx3-ubyte", idx_images(10, 2, 2));
  write_plain(directory / "t10k-labels-idx1-ubyte", idx_labels(10));
}

fast_status train_observed(fast_observer* observer, const fast::testing::TemporaryDirectory& data,
                           void (*attach)(fast_options*, void*), void* context) {
  return run_local(2, [&](fast_group* group) {
    Options options;
    options.set("epochs", "2");
    options.set("batch_size", "5");
    options.set("deadline", "60");
    if (fast_options_observe(options.handle, observer) != FAST_OK) return 1;
    attach(options.handle, context);
    fast_backend* backend = make_regression(4, 10, 1);
    const fast_status status =
        fast_train(group, "ring", backend, data.path().c_str(), options.handle, nullptr);
    fast_backend_free(backend);
    return status == FAST_OK ? 0 : 2;
  });
}

}  // namespace

TEST_CASE("callbacks in C are told what an observer in C++ is told, event by event") {
  Both both;
  observed_run run{both.observer, Both::attach, &both, 12};
  const fast_status status = fast_run_local(3, observed_worker, &run);
  INFO(fast_last_error());
  REQUIRE(status == FAST_OK);
  const Lines lines = both.sorted();
  CHECK(lines == both.theirs->sorted());
  CHECK(count_of(lines, "phase step ") == 36);
  CHECK(count_of(lines, "scalar test/round value 11 ") == 3);
  CHECK(count_of(lines, "healed worker 2 peer 2 ") == 1);
  CHECK(count_of(lines, "read worker 0 from 1 fresh 1 sequence 1 round 0 age 0 at ") == 1);
  CHECK(count_of(lines, "published worker 1 from 1 ") >= 12);
}

TEST_CASE("a run of the trainer tells epochs, scalars and values through the C interface") {
  const fast::testing::TemporaryDirectory data;
  write_samples(data);
  Both both;
  const fast_status status = train_observed(both.observer, data, Both::attach, &both);
  INFO(fast_last_error());
  REQUIRE(status == FAST_OK);
  const Lines lines = both.sorted();
  CHECK(lines == both.theirs->sorted());
  CHECK(count_of(lines, "epoch ended text \"\" worker 1 epoch 1 round 8 ") == 1);
  CHECK(count_of(lines, "values weights/biases count 10 first ") == 4);
  CHECK(count_of(lines, "scalar test/mean_model_accuracy value ") == 4);
}

TEST_CASE("functions that are NULL are left out; destroy is called once, after the last user") {
  event_lines* lines = event_lines_create();
  fast_observer_functions none{};
  none.struct_size = sizeof none;
  fast_observer* silent = nullptr;
  fast_observer* kept = nullptr;
  REQUIRE(fast_observer_create(&none, nullptr, &silent) == FAST_OK);
  REQUIRE(event_lines_observe(lines, &kept) == FAST_OK);
  observed_run run{
      silent,
      [](fast_options* options, void* observer) {
        REQUIRE(fast_options_observe(options, static_cast<fast_observer*>(observer)) == FAST_OK);
      },
      kept, 5};
  CHECK(fast_run_local(2, observed_worker, &run) == FAST_OK);
  CHECK(event_lines_count(lines) > 0);
  fast_observer_free(silent);
  {
    Options options;
    REQUIRE(fast_options_observe(options.handle, kept) == FAST_OK);
    fast_observer_free(kept);
    CHECK(event_lines_destroyed(lines) == 0);
  }
  CHECK(event_lines_destroyed(lines) == 1);
  event_lines_free(lines);
}

TEST_CASE("a program in C tells scalars to an observer of its own") {
  Both both;
  CHECK(fast_observer_scalar(both.observer, "train/accuracy", 0.25, 3, 17) == FAST_OK);
  const Lines lines = both.sorted();
  REQUIRE(lines.size() == 1);
  CHECK(count_of(lines, "scalar train/accuracy value 0.25 worker 3 round 17 at ") == 1);
}

TEST_CASE("the writers of traces and of event files can be made in C") {
  const fast::testing::TemporaryDirectory directory;
  fast_observer* trace = nullptr;
  fast_observer* board = nullptr;
  REQUIRE(fast_observer_trace((directory / "traces").c_str(), 0, &trace) == FAST_OK);
  REQUIRE(fast_observer_tensorboard((directory / "board").c_str(), &board) == FAST_OK);
  observed_run run{
      trace,
      [](fast_options* options, void* observer) {
        REQUIRE(fast_options_observe(options, static_cast<fast_observer*>(observer)) == FAST_OK);
      },
      board, 5};
  CHECK(fast_run_local(1, observed_worker, &run) == FAST_OK);
  fast_observer_free(trace);
  fast_observer_free(board);
  const auto contents = [](const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  CHECK_THAT(contents(directory / "traces" / "trace-0.0a.pftrace"),
             ContainsSubstring("test/round"));
  std::string events;
  for (const auto& file : std::filesystem::directory_iterator(directory / "board")) {
    events += contents(file.path());
  }
  CHECK_THAT(events, ContainsSubstring("test/round"));
}

TEST_CASE("a trace in C can be of some rounds alone, and of a size") {
  const fast::testing::TemporaryDirectory directory;
  fast_observer* trace = nullptr;
  REQUIRE(fast_observer_trace_rounds(directory.path().c_str(), 0, 1 << 20, 2, 3, &trace) ==
          FAST_OK);
  observed_run run{
      trace,
      [](fast_options* options, void* observer) {
        REQUIRE(fast_options_observe(options, static_cast<fast_observer*>(observer)) == FAST_OK);
      },
      trace, 6};
  CHECK(fast_run_local(1, observed_worker, &run) == FAST_OK);
  fast_observer_free(trace);
  std::set<std::int64_t> rounds;
  for (const auto& event : fast::observe::read_traces(directory.path()).events) {
    for (const auto& [name, value] : event.integers) {
      if (name == "round") rounds.insert(value);
    }
  }
  CHECK(rounds == std::set<std::int64_t>{2, 3});
}

TEST_CASE("observers that cannot be made are refused in one line") {
  fast_observer* observer = nullptr;
  const auto refused = [](fast_status status, fast_status expected, const char* text) {
    CHECK(status == expected);
    CHECK_THAT(fast_last_error(), ContainsSubstring(text));
  };
  fast_observer_functions functions{};
  refused(fast_observer_create(&functions, nullptr, &observer), FAST_ERROR_ARGUMENT,
          "struct_size is 0");
  functions.struct_size = sizeof functions + 8;
  refused(fast_observer_create(&functions, nullptr, &observer), FAST_ERROR_ARGUMENT,
          "set it to sizeof(fast_observer_functions)");
  refused(fast_observer_create(nullptr, nullptr, &observer), FAST_ERROR_ARGUMENT,
          "functions is NULL");
  functions.struct_size = sizeof functions;
  refused(fast_observer_create(&functions, nullptr, nullptr), FAST_ERROR_ARGUMENT,
          "observer is NULL");
  refused(fast_observer_trace(nullptr, 0, &observer), FAST_ERROR_ARGUMENT, "directory is NULL");
  refused(fast_observer_trace("/tmp", -1, &observer), FAST_ERROR_ARGUMENT, "worker -1");
  refused(fast_observer_trace_rounds("/tmp", 0, 0, 0, -1, &observer), FAST_ERROR_ARGUMENT,
          "0 bytes");
  refused(fast_observer_trace_rounds("/tmp", 0, 1 << 20, 4, 3, &observer), FAST_ERROR_ARGUMENT,
          "rounds 4 to 3");
  refused(fast_observer_trace_rounds("/tmp", 0, 1 << 20, -2, 3, &observer), FAST_ERROR_ARGUMENT,
          "rounds -2 to 3");
  refused(fast_observer_trace("/dev/null/traces", 0, &observer), FAST_ERROR_RESOURCE,
          "/dev/null/traces");
  refused(fast_observer_tensorboard("/dev/null/board", &observer), FAST_ERROR_RESOURCE,
          "/dev/null/board");
  refused(fast_observer_prometheus(0, 0, &observer), FAST_ERROR_ARGUMENT, "port 0");
  refused(fast_observer_prometheus(70000, 0, &observer), FAST_ERROR_ARGUMENT, "port 70000");
  refused(fast_observer_prometheus_at(nullptr, 9400, 0, &observer), FAST_ERROR_ARGUMENT,
          "address is NULL");
  refused(fast_observer_prometheus_at("192.0.2.1", 9400, 0, &observer), FAST_ERROR_RESOURCE,
          "cannot listen on 192.0.2.1 port 9400");
  CHECK(observer == nullptr);
  Options options;
  refused(fast_options_observe(options.handle, nullptr), FAST_ERROR_ARGUMENT, "observer is NULL");
  refused(fast_options_observe(nullptr, observer), FAST_ERROR_ARGUMENT, "options is NULL");
  refused(fast_observer_scalar(nullptr, "x", 1, 0, 0), FAST_ERROR_ARGUMENT, "observer is NULL");
  refused(fast_worker_scalar(nullptr, "x", 1), FAST_ERROR_ARGUMENT, "worker is NULL");
  REQUIRE(fast_observer_create(&functions, nullptr, &observer) == FAST_OK);
  refused(fast_observer_scalar(observer, nullptr, 1, 0, 0), FAST_ERROR_ARGUMENT,
          "a scalar's name is NULL");
  refused(fast_observer_scalar(observer, "", 1, 0, 0), FAST_ERROR_ARGUMENT,
          "a scalar's name is empty");
  fast_observer_free(observer);
  fast_observer_free(nullptr);
}
