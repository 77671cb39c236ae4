// Calls of a Worker in an order that makes no sense.
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <map>

#include "support/catch.hpp"
#include "worker/constant.hpp"

using namespace fast;
using testing::Constant;

namespace {

using Call = std::function<void(Constant&)>;

const std::map<std::string, Call>& calls_of_training() {
  static const std::map<std::string, Call> calls = {
      {"begin_round", [](Constant& c) { c.worker.begin_round(); }},
      {"end_round", [](Constant& c) { c.worker.end_round(); }},
      {"republish", [](Constant& c) { c.worker.republish(); }},
      {"set_schedule", [](Constant& c) { c.worker.set_schedule(stencil::complete()); }},
      {"restore", [](Constant& c) { c.worker.restore({}); }},
  };
  return calls;
}

double mean_of(const Constant& c) {
  std::vector<double> mean(c.x.size());
  c.worker.mean_model(std::as_writable_bytes(std::span(mean)));
  return mean.front();
}

std::string error_of(Constant& c, const Call& call) {
  try {
    call(c);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::argument ? error.what() : "an error of another kind";
  }
  return "no error";
}

}  // namespace

TEST_CASE("after finish(), calls of training are errors and change neither weights nor the mean") {
  for (const char* rule : {"awc", "atc", "push_sum", "local"}) {
    for (const std::int64_t staleness : {0, 1}) {
      INFO(rule << " staleness " << staleness);
      local::run(3, [&](const Group& group) {
        WorkerOptions options = testing::quick();
        options.algorithm = algorithm::by_name(rule);
        options.staleness = staleness;
        Constant c(group, stencil::ring(), group.rank(), options);
        c.idle(2);
        c.worker.await_finish();
        const double own = c.x[0], mean = mean_of(c);
        for (const auto& [name, call] : calls_of_training()) {
          const std::string why = error_of(c, call);
          testing::expect(why.starts_with("Worker: " + name + "() was called after finish()"), why);
          testing::expect(c.x[0] == own && c.worker.round() == 2, name + " changes nothing here");
        }
        group.barrier(Deadline(Seconds(40)), "all have called");
        testing::expect(mean_of(c) == mean, "the mean model is the one of the end");
      });
    }
  }
}

TEST_CASE("a round that was not begun counts no time of a step") {
  local::run(2, [](const Group& group) {
    Constant c(group, stencil::ring(), group.rank());
    c.worker.end_round();
    testing::expect(c.worker.stats().step_s == 0, "no step was timed");
    c.idle(3);
    testing::expect(c.worker.stats().step_s < 60, "only steps are timed");
    testing::expect_near(c.x[0], 0.5, "each round averages");
  });
}
