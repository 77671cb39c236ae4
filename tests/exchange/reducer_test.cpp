#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <optional>

#include "exchange/collective/all_reduce.hpp"
#include "exchange/group_impl.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"

using namespace fast;

TEST_CASE("the all-reduce gives every worker the same average") {
  for (const int workers : {1, 2, 3, 5}) {
    for (const std::size_t count : {1, 3, 64, 1000, 4099}) {
      CHECK_NOTHROW(local::run(workers, [&](const Group& group) {
        ExchangeOptions options;
        options.deadline = Seconds(20);
        const auto reducer = group.open_reducer(count * sizeof(double), options);
        for (int call = 0; call < 3; ++call) {
          std::vector<double> values(count), expected(count);
          for (int r = 0; r < workers; ++r) {
            Rng rng(mix_seed(3, static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(call)));
            for (std::size_t e = 0; e < count; ++e) {
              const double value = rng.normal();
              expected[e] += value / workers;
              if (r == group.rank()) values[e] = value;
            }
          }
          reducer->average(std::span(values));
          for (std::size_t e = 0; e < count; ++e) {
            testing::expect(std::abs(values[e] - expected[e]) < 1e-13, "average is off");
          }
          std::string bits(reinterpret_cast<const char*>(values.data()), count * sizeof(double));
          const auto all = group.all_gather(bits, Deadline(Seconds(20)), "comparing");
          for (const auto& other : all) testing::expect(other == bits, "workers differ");
          std::vector<float> small(1, static_cast<float>(group.rank()));
          reducer->average(std::span(small));
          testing::expect(std::abs(small[0] - static_cast<float>(workers - 1) / 2) < 1e-6F, "f32");
        }
      }));
    }
  }
}

TEST_CASE("more than was announced is refused") {
  local::run(1, [](const Group& group) {
    const auto reducer = group.open_reducer(8, {});
    std::vector<double> values(2);
    CHECK_THROWS_AS(reducer->average(std::span(values)), Error);
  });
}

namespace {

Link open_link(const Group& group) {
  return group.open({sizeof(double), 1, 0}, [](std::int64_t) { return RoundEdges{}; }, {});
}

void expect_mean_of_ranks(const Group& group, Reducer& reducer) {
  double value = group.rank();
  reducer.average(std::span(&value, 1));
  testing::expect(value == (group.size() - 1) / 2.0, "the average of the ranks is another");
}

}  // namespace

TEST_CASE("all-reduces use the link of their group, also when its workers have finished") {
  CHECK_NOTHROW(local::run(3, [](const Group& group) {
    Link link = open_link(group);
    const auto reducer = group.open_reducer(sizeof(double), {});
    testing::expect(GroupImpl::of(group).latest_link() == link.peers, "there is another link");
    link.peers->announce(WorkerStatus::running);
    expect_mean_of_ranks(group, *reducer);
    link.peers->announce(WorkerStatus::finished);
    link = {};
    expect_mean_of_ranks(group, *reducer);
  }));
}

TEST_CASE("without a link, all-reduces of a group open one for all of them") {
  CHECK_NOTHROW(local::run(3, [](const Group& group) {
    const auto first = group.open_reducer(sizeof(double), {});
    const auto link = GroupImpl::of(group).latest_link();
    const auto second = group.open_reducer(sizeof(double), {});
    testing::expect(GroupImpl::of(group).latest_link() == link, "each has a link of its own");
    expect_mean_of_ranks(group, *first);
    expect_mean_of_ranks(group, *second);
  }));
}

TEST_CASE("an all-reduce ends when a worker of its link has failed") {
  for (const bool is_peer_of_worker : {false, true}) {
    try {
      local::run(3, [&](const Group& group) {
        const std::optional<Link> link =
            is_peer_of_worker ? std::optional(open_link(group)) : std::nullopt;
        const auto reducer = group.open_reducer(sizeof(double), {});
        if (group.rank() == 1 && link) link->peers->announce(WorkerStatus::failed);
        if (group.rank() == 1) throw Error(ErrorKind::argument, "the root cause");
        expect_mean_of_ranks(group, *reducer);
      });
      FAIL("it went on");
    } catch (const Error& error) {
      CHECK_THAT(error.what(), ContainsSubstring("the root cause"));
    }
  }
}

namespace {

/// What a survivor knows at some time: who has ended, and who of them by itself with an error.
struct View {
  double after_s;
  std::vector<int> ended, failed;
};

/// The survivor's error; internal: none. A worker that does not report counts as dead after 0.4 s.
ErrorKind kind_at(int rank, const std::vector<View>& views) {
  const Deadline began(Seconds(0));
  const auto now = [&]() -> const View& {
    const View* latest = &views.front();
    for (const View& view : views)
      if (began.elapsed_s() >= view.after_s) latest = &view;
    return *latest;
  };
  try {
    exchange::fail_without({[&] { return now().ended; }, [&] { return now().failed; }}, rank,
                           Seconds(0.4));
  } catch (const Error& error) {
    const std::string last = fmt::format("worker {} is gone", fmt::join(now().ended, ", "));
    CHECK(std::string(error.what()).find(last) != std::string::npos);
    return error.kind();
  }
  return ErrorKind::internal;
}

}  // namespace

TEST_CASE("deaths are reported by one survivor, also if they become known one after another") {
  CHECK(kind_at(0, {{0, {1}, {}}}) == ErrorKind::deadline);
  // Worker 0 reports the death of worker 1.
  CHECK(kind_at(2, {{0, {1}, {}}, {0.2, {0, 1}, {0}}}) == ErrorKind::peer_failed);
  // Workers 0 and 1 of 4 die, the second at the same time or later.
  for (const double later : {0.0, 0.2}) {
    CHECK(kind_at(2, {{0, {1}, {}}, {later, {0, 1}, {}}}) == ErrorKind::deadline);
    CHECK(kind_at(3, {{0, {1}, {}}, {later, {0, 1}, {}}, {later + 0.1, {0, 1, 2}, {2}}}) ==
          ErrorKind::peer_failed);
  }
  CHECK(kind_at(1, {{0, {}, {}}}) == ErrorKind::internal);
}

TEST_CASE("a worker that has failed has told why: nobody reports it a second time") {
  CHECK(kind_at(0, {{0, {1}, {1}}}) == ErrorKind::peer_failed);
  CHECK(kind_at(2, {{0, {1}, {1}}}) == ErrorKind::peer_failed);
  CHECK(kind_at(1, {{0, {2}, {}}, {0, {0, 2}, {2}}}) == ErrorKind::peer_failed);
}

TEST_CASE("a death is reported also if the worker that would report it does not come") {
  CHECK(kind_at(2, {{0, {0}, {}}}) == ErrorKind::deadline);
  // Worker 1 gives up first, worker 2 only later.
  CHECK(kind_at(1, {{0, {3}, {}}}) == ErrorKind::deadline);
  CHECK(kind_at(2, {{0, {3}, {}}, {0.6, {1, 3}, {1}}}) == ErrorKind::peer_failed);
}
