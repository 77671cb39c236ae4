// Schedules as text, as they are drawn, and as they are shrunk.
#include "chaos/plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/algorithm/rules.hpp>
#include <set>

#include "chaos/bounds.hpp"
#include "chaos/draw.hpp"
#include "chaos/features.hpp"
#include "chaos/refusals.hpp"
#include "chaos/shrink.hpp"
#include "chaos/tally.hpp"
#include "chaos/training.hpp"
#include "support/catch.hpp"

using namespace chaos;

namespace {

Wish everything() {
  Wish wish;
  wish.rules.clear();
  for (const Bound& bound : bounds()) wish.rules.emplace_back(bound.rule);
  wish.kinds = all_kinds();
  wish.hosts = 3;
  return wish;
}

Result result(int rank, double own) {
  Result one;
  one.rank = rank;
  one.own = one.mean = own;
  return one;
}

Ending good_ending(const std::vector<double>& own) {
  Ending ending{0, {}, ""};
  for (std::size_t rank = 0; rank < own.size(); ++rank)
    ending.results.push_back(result(static_cast<int>(rank), own[rank]));
  return ending;
}

}  // namespace

TEST_CASE("every rule of the library has a bound, with a reason") {
  for (const std::string_view rule : fast::algorithm::names()) {
    CHECK_FALSE(bound_of(rule).reason.empty());
    CHECK(bound_of(rule).steady < 0.1);
  }
  CHECK(bounds().size() == fast::algorithm::names().size());
}

TEST_CASE("a drawn schedule runs, is the same again, and survives being written and read") {
  std::set<std::pair<std::string, Kind>> pairs;
  std::set<std::int64_t> staleness;
  std::set<int> workers;
  std::set<std::string> with;
  std::set<bool> learns;
  const Wish wish = everything();
  const std::size_t all_pairs = wish.rules.size() * wish.kinds.size();
  for (std::uint64_t index = 0; index < 2 * all_pairs; ++index) {
    const Plan plan = draw(wish, 3, index);
    CAPTURE(write(plan));
    CHECK(why_not(plan).empty());
    CHECK(read(write(plan)) == plan);
    CHECK(draw(wish, 3, index) == plan);
    CHECK(plan.workers >= std::max(2, plan.hosts));
    pairs.emplace(plan.rule, plan.events.front().kind);
    staleness.insert(plan.staleness);
    workers.insert(plan.workers);
    with.insert(plan.with.begin(), plan.with.end());
    learns.insert(plan.learns_suspicion);
  }
  CHECK(pairs.size() == all_pairs);
  CHECK(staleness == std::set<std::int64_t>{-1, 0, 1, 3});
  CHECK(*workers.begin() == 2);
  CHECK(*workers.rbegin() == 16);
  CHECK(with.size() == features().size());
  CHECK(learns.size() == 2);
}

TEST_CASE("diloco and choco are drawn with all entries and with few, exact and coded") {
  for (const char* rule : {"diloco", "choco"}) {
    Wish wish = everything();
    wish.rules = {rule};
    std::set<std::pair<bool, bool>> kinds;
    std::set<std::string> codecs;
    for (std::uint64_t index = 0; index < 400; ++index) {
      const Plan plan = draw(wish, 3, index);
      CAPTURE(write(plan));
      CHECK(why_not(plan).empty());
      CHECK(read(write(plan)) == plan);
      kinds.emplace(plan.sparse, plan.codec != "identity");
      codecs.insert(plan.codec);
    }
    CHECK(kinds.size() == 4);
    CHECK(codecs.count("qsgd4") + codecs.count("qsgd2") == 2);
  }
  CHECK_THAT(why_not(read("rule=awc workers=3 entries=few kill:1@54+0/0*0")),
             ContainsSubstring("diloco and choco alone"));
}

TEST_CASE("a schedule's line that is no good names the word") {
  CHECK_THROWS_WITH(read("rule=awc kil:2@5+0/0*0"), ContainsSubstring("event \"kil\""));
  CHECK_THROWS_WITH(read("rule=awc kill:2@5"), ContainsSubstring("kill:2@5"));
  CHECK_THROWS_WITH(read("colour=red"), ContainsSubstring("colour"));
}

TEST_CASE("ranks are on the hosts that the list of hosts gives them") {
  Plan plan;
  plan.workers = 7;
  plan.hosts = 3;
  CHECK(plan.host_list() == "10.99.0.1:3,10.99.0.2:2,10.99.0.3:2");
  std::vector<int> hosts;
  for (int rank = 0; rank < plan.workers; ++rank) hosts.push_back(plan.host_of(rank));
  CHECK(hosts == std::vector<int>{1, 1, 1, 2, 2, 3, 3});
  plan.events = {event_from("host:2@5+0/0*0"), event_from("kill:6@5+0/0*0")};
  CHECK(plan.killed() == std::vector<int>{3, 4, 6});
}

TEST_CASE("features are of training runs, and of the rules that have them") {
  CHECK(why_not(read("rule=awc workers=3 with=ema,mix disk:@54+0/1*0")).empty());
  CHECK_THAT(why_not(read("rule=awc workers=3 with=ema kill:1@54+0/0*0")),
             ContainsSubstring("fast-train alone"));
  CHECK_THAT(why_not(read("rule=awc workers=3 with=emu disk:@54+0/1*0")),
             ContainsSubstring("no \"emu\""));
  CHECK_THAT(why_not(read("rule=awc workers=3 with=validation,ema disk:@54+0/1*0")),
             ContainsSubstring("not for ema"));
  CHECK_THAT(why_not(read("rule=awc workers=3 arena=rotating with=ema disk:@54+0/1*0")),
             ContainsSubstring("not for rotating"));
  CHECK_THAT(why_not(read("rule=awc workers=3 arena=rotating with=mix disk:@54+0/1*0")),
             ContainsSubstring("not for rotating"));
  CHECK_THAT(why_not(read("rule=none workers=3 with=mix disk:@54+0/1*0")),
             ContainsSubstring("not for none"));
}

TEST_CASE("a failing schedule is shrunk to what makes it fail") {
  const Plan failing = read(
      "rule=atc workers=13 topology=torus2d staleness=3 codec=bf16 stop:1,5,9@50+0/1*0 "
      "kill:12@35+1200/0*0 slow:2@40+0/1*0");
  int tries = 0;
  const auto fails = [&](const Plan& plan) {
    ++tries;
    return plan.has(Kind::stop) && plan.staleness > 0;
  };
  const Plan simplest = shrink(failing, fails, 100);
  CHECK(write(simplest) == write(read("rule=awc workers=2 topology=ring staleness=3 "
                                      "stop:1@50+0/1*0")));
  CHECK(tries <= 100);
  for (const Plan& plan : simpler(failing)) CHECK(why_not(plan).empty());
}

TEST_CASE("shrinking stops at its limit and keeps a schedule that fails") {
  const Plan failing = read("rule=awc workers=9 kill:3@35+0/0*0 kill:4@36+0/0*0");
  int tries = 0;
  const Plan result = shrink(
      failing,
      [&](const Plan&) {
        ++tries;
        return false;
      },
      5);
  CHECK(result == failing);
  CHECK(tries == 5);
}

TEST_CASE("survivors away from their optimum, torn reads, hangs and missing workers are faults") {
  const Plan plan = read("rule=awc workers=2 slow:0@5+0/1*0");
  const double optimum = (target(0) + target(1)) / 2;
  CHECK(judge(plan, good_ending({optimum, optimum}), 0).wrong.empty());
  CHECK_FALSE(judge(plan, good_ending({optimum + 0.1, optimum}), 0).wrong.empty());
  CHECK_FALSE(judge(plan, good_ending({std::nan(""), optimum}), 0).wrong.empty());
  CHECK_FALSE(judge(plan, good_ending({optimum}), 0).wrong.empty());
  CHECK(judge(plan, Ending{{}, {}, ""}, 0).fault == Fault::hang);
  Ending torn = good_ending({optimum, optimum});
  torn.results[0].torn = 1;
  CHECK(judge(plan, torn, 0).fault == Fault::torn);
}

TEST_CASE("trackers are judged by the optimum, however workers hear of each other") {
  const double optimum = (target(0) + target(1)) / 2;
  REQUIRE(std::abs(optimum) > 0.6);
  const Ending on_the_way = good_ending({optimum / 4, optimum / 4});
  for (const char* text :
       {"staleness=inf hosts=2 path=pull", "staleness=inf hosts=2 path=two_sided",
        "staleness=inf hosts=1 path=pull", "staleness=3 hosts=2 path=pull"}) {
    const Plan plan = read(fmt::format("rule=gradient_tracking workers=2 {}", text));
    INFO(text);
    CHECK_FALSE(judge(plan, on_the_way, 0).wrong.empty());
    CHECK_FALSE(judge(plan, good_ending({-optimum, -optimum}), 0).wrong.empty());
    CHECK_FALSE(judge(plan, good_ending({2 * optimum, 2 * optimum}), 0).wrong.empty());
    CHECK_FALSE(judge(plan, good_ending({std::nan(""), optimum}), 0).wrong.empty());
  }
}

TEST_CASE("a rule that needs everybody ends with one message after a death") {
  const Plan plan = read("rule=allreduce workers=3 kill:1@5+0/0*0");
  CHECK(judge(plan, Ending{1, {}, "error: worker 1 is gone\n"}, 0).wrong.empty());
  CHECK_FALSE(judge(plan, Ending{1, {}, "error: a\nerror: a\n"}, 0).wrong.empty());
  CHECK_FALSE(judge(plan, Ending{0, {}, "error: a\n"}, 0).wrong.empty());
}

TEST_CASE("all kinds of events are drawn on several hosts, and those of one host on one") {
  CHECK(default_kinds(true) == all_kinds());
  for (const Kind kind : default_kinds(false)) {
    CHECK_FALSE(is_of_links(kind));
    CHECK(kind != Kind::host);
  }
}

TEST_CASE("a training run that ended well has printed one table and no error") {
  const std::string table = "  test accuracy, mean model     75.67 %\n",
                    stopped = "stopped after 3 rounds";
  CHECK(of_output("worker 1 is back\n" + table).empty());
  CHECK(of_output(stopped).empty());
  for (const std::string& log :
       {std::string(), table + table, table + stopped, "error: a\n" + table})
    CHECK_FALSE(of_output(log).empty());
}

TEST_CASE("a table has a row for each rule and counts a schedule for each kind of its events") {
  Tally tally;
  Verdict verdict;
  verdict.distance = 0.0125;
  tally.add(read("rule=awc kill:1@5+0/0*0 stop:0@5+0/1*0"), verdict);
  tally.add(read("rule=d2 kill:1@5+0/0*0"), Verdict::of("it hung", Fault::hang));
  CHECK(tally.failures() == 1);
  CHECK_THAT(tally.table(), ContainsSubstring("1 0.0125") && ContainsSubstring("1!1 0.0000"));
  CHECK_THAT(tally.summary(), ContainsSubstring("2 schedules, 1 failures: 1 hangs"));
}

TEST_CASE("what is to be refused is nothing that would be drawn") {
  for (const Refusal& refusal : refusals()) {
    CAPTURE(write(refusal.plan));
    CHECK_THAT(why_not(refusal.plan), ContainsSubstring(refusal.text));
  }
}
