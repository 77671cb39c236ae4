#include <pthread.h>

#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "support/catch.hpp"
#include "worker/scenarios/on_threads.hpp"

using namespace fast;

namespace {

/// From forbid() on, until its end, this process makes no threads: their stacks fit nowhere.
class ThreadLimit {
 public:
  ThreadLimit() { pthread_getattr_default_np(&before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;
  ~ThreadLimit() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  static void forbid() {
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 60);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }

 private:
  pthread_attr_t before_{};
};

}  // namespace

TEST_CASE("every scenario holds on threads") { testing::hold_on_threads(testing::scenarios()); }

TEST_CASE("local::run reports the first error and refuses nobody") {
  CHECK_THROWS_WITH(local::run(3,
                               [](const Group& group) {
                                 if (group.rank() == 1) fail(ErrorKind::data, "no data here");
                                 group.barrier(Deadline(Seconds(20)), "meeting");
                               }),
                    "no data here");
  CHECK_THROWS_AS(local::run(0, [](const Group&) {}), Error);
}

TEST_CASE(
    "if the system makes no more threads, workers that have begun end, and the error says so") {
  const ThreadLimit limit;
  std::string why;
  try {
    local::run(2000, [](const Group& group) {
      ThreadLimit::forbid();
      group.barrier(Deadline(Seconds(60)), "meeting");
    });
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::resource);
    why = error.what();
  }
  CHECK_THAT(
      why, ContainsSubstring("of 2000 cannot be made") && ContainsSubstring("take fewer workers"));
}

TEST_CASE("a worker on a worker count that the topology does not fit is refused") {
  const Topology pair("pair", std::vector<std::vector<int>>{{1}, {0}});
  std::vector<float> x(3);
  CHECK_THROWS_AS(local::run(3,
                             [&](const Group& group) {
                               std::vector<float> mine(3);
                               Worker worker(group, pair, {view_of("x", std::span(mine))});
                             }),
                  Error);
}
