// A program's own exception on one rank: the others end soon after it, and one rank reports it.
#include <fmt/format.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/worker/worker.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "support/rules.hpp"

using namespace fast;

namespace {

constexpr double longest_s = 30;  ///< far above what it takes, far below any deadline
constexpr int failing_round = 20;
Deadline no_limit() { return Deadline(Seconds(60)); }

/// Of all ranks of one machine: they share its clock.
double now_s() { return Seconds(Clock::now().time_since_epoch()).count(); }

struct Outcome {
  double failed_at_s = 0;  ///< of the rank that fails
  double ended_at_s = 0;   ///< without anything that it had opened
  bool reports = false;
  std::string error;
};

/// Runs `work`, which throws on every rank. `fail` throws the error of the failing rank.
Outcome outcome_of(int rank, const std::function<void(const std::function<void()>& fail)>& work) {
  Outcome outcome;
  const auto fail = [&] {
    outcome.failed_at_s = now_s();
    throw std::runtime_error("the root cause");
  };
  try {
    work(fail);
    outcome.error = "no error";
  } catch (const Error& error) {
    outcome.reports = error.to_be_reported_by(rank);
    outcome.error = error.what();
  } catch (const std::runtime_error& error) {
    outcome.reports = true;
    outcome.error = error.what();
  }
  outcome.ended_at_s = now_s();
  return outcome;
}

void check(const std::string& what, const Outcome& outcome, int failing) {
  const auto gathered = [&](double value) {
    std::vector<double> all;
    const std::string own = fmt::format("{}", value);
    for (const std::string& text : testing::world().all_gather(own, no_limit(), "a test"))
      all.push_back(std::stod(text));
    return all;
  };
  const double failed_at = gathered(outcome.failed_at_s)[static_cast<std::size_t>(failing)];
  const std::vector<double> ends = gathered(outcome.ended_at_s),
                            reports = gathered(outcome.reports ? 1 : 0);
  const double took = *std::max_element(ends.begin(), ends.end()) - failed_at;
  const auto reporters = std::count(reports.begin(), reports.end(), 1);
  const bool by_cause = reports[static_cast<std::size_t>(failing)] == 1;
  const bool holds = outcome.error != "no error" && reporters == 1 && by_cause && took < longest_s;
  SUCCEED();
  if (!holds)
    FAIL(
        fmt::format("{}: rank {} fails; the last rank ends {:.2f} s later, {} ranks report; rank "
                    "{}: {}",
                    what, failing, took, reporters, testing::world().rank(), outcome.error));
}

enum class Where { in_step, between_steps };

void train(const mpi::Communicator& ranks, std::string_view rule, bool fails, Where where,
           const std::function<void()>& fail) {
  std::vector<float> weights(1000, static_cast<float>(ranks.rank()));
  WorkerOptions options;
  options.algorithm = algorithm::by_name(rule, testing::short_of(rule));
  Worker worker(ranks, testing::topology_for(rule), {view_of("weights", std::span(weights))},
                options);
  for (const Deadline deadline = no_limit(); !deadline.expired();) {
    const bool now = fails && worker.round() == failing_round;
    if (now && where == Where::between_steps) fail();
    const auto step = [&] {
      if (now) fail();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    worker.step(step, {.learning_rate = 0.01});
  }
}

void check_rule(std::string_view rule, int failing, Where where) {
  const mpi::Communicator ranks = testing::world().split(0, no_limit());
  const Outcome outcome = outcome_of(ranks.rank(), [&](const std::function<void()>& fail) {
    train(ranks, rule, ranks.rank() == failing, where, fail);
  });
  check(std::string(rule), outcome, failing);
}

}  // namespace

TEST_CASE("an exception in a step of one rank ends the others, and one rank reports it") {
  int failing = 0;
  for (const std::string_view rule : algorithm::names())
    check_rule(rule, failing++ % testing::world().size(), Where::in_step);
}

TEST_CASE("an exception between the steps of one rank ends the others") {
  for (const char* rule : {"awc", "allreduce", "none"})
    check_rule(rule, testing::world().size() - 1, Where::between_steps);
}

TEST_CASE("a group can be used again after a worker has failed") {
  const mpi::Communicator ranks = testing::world().split(0, no_limit());
  for (int time = 0; time < 2; ++time) {
    const Outcome outcome = outcome_of(ranks.rank(), [&](const std::function<void()>& fail) {
      train(ranks, "allreduce", ranks.rank() == 0, Where::in_step, fail);
    });
    check("allreduce", outcome, 0);
  }
}

TEST_CASE("an exception ends the others' all-reduce without a worker") {
  const mpi::Communicator ranks = testing::world().split(0, no_limit());
  const Outcome outcome = outcome_of(ranks.rank(), [&](const std::function<void()>& fail) {
    const auto reducer = Group(ranks).open_reducer(1000 * sizeof(float), {});
    std::vector<float> values(1000);
    for (int call = 0; ranks.size() > 1 || call < failing_round; ++call) {
      if (ranks.rank() == 0 && call == failing_round) fail();
      reducer->average(std::span(values));
    }
    fail();
  });
  check("allreduce", outcome, 0);
}
