#include <pthread.h>

#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "support/catch.hpp"
#include "worker/quick.hpp"
#include "worker/reported.hpp"

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

/// Counts what a worker sends while workers compare their models.
class Comparing final : public testing::Reported {
 public:
  Comparing(const Group& threads, std::size_t& sent_bytes)
      : Reported(threads, [] { return std::vector<int>{}; }), sent_bytes_(sent_bytes) {}
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override {
    if (purpose.find("comparing models") != std::string_view::npos) sent_bytes_ += bytes.size();
    return Reported::all_gather(bytes, deadline, purpose);
  }

 private:
  std::size_t& sent_bytes_;
};

}  // namespace

TEST_CASE("workers compare long models by hashes, and send two texts when they differ") {
  constexpr int workers = 4, other = 2;
  constexpr std::size_t tensors = 1000, least_text = tensors * 10;
  const bool differ = GENERATE(false, true);
  std::vector<std::size_t> sent(workers);
  std::vector<std::string> errors(workers);
  local::run(workers, [&](const Group& threads) {
    const auto me = static_cast<std::size_t>(threads.rank());
    const Group group = GroupImpl::group(std::make_shared<Comparing>(threads, sent[me]));
    std::vector<double> x(tensors + 1);
    std::vector<TensorView> views;
    for (std::size_t k = 0; k < tensors; ++k)
      views.push_back(view_of("tensor " + std::to_string(k), std::span(x).subspan(k, 1)));
    if (differ && me >= other)
      views.back() = view_of("tensor 999", std::span(x).subspan(tensors - 1, 2));
    try {
      Worker(group, stencil::ring(), views, testing::quick()).await_finish();
    } catch (const Error& error) {
      errors[me] = error.what();
    }
  });
  for (std::size_t rank = 0; rank < workers; ++rank) {
    const bool sends_text = differ && (rank == 0 || rank == other);
    CHECK((sends_text ? sent[rank] > least_text : sent[rank] < 100));
    CHECK(errors[rank] == errors[0]);
    CHECK(errors[rank].empty() != differ);
    if (!differ) continue;
    CHECK_THAT(errors[rank], Catch::Contains("worker 0 has 1000 f64") &&
                                 Catch::Contains("worker 2 has 1001 f64"));
  }
}

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
