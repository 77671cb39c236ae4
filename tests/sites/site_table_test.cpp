#include "sites/site_table.hpp"

#include "sites/site_history.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::sites;
using std::chrono::milliseconds;

namespace {
Status from(const std::string& site, std::uint64_t incarnation) {
  Status status;
  status.site = site;
  status.incarnation = incarnation;
  return status;
}
}  // namespace

TEST_CASE("a site is there until it has been silent") {
  SiteTable table("own", Seconds(2));
  const auto start = Clock::now();
  CHECK(table.hear(from("a", 1), start));
  CHECK(table.hear(from("b", 1), start + milliseconds(1500)));
  CHECK(table.living(start + milliseconds(1999)).size() == 2);
  CHECK(table.living("a", start + milliseconds(1999)) != nullptr);
  CHECK(table.living("a", start + milliseconds(2000)) == nullptr);
  const auto left = table.living(start + milliseconds(3000));
  REQUIRE(left.size() == 1);
  CHECK(left[0]->site == "b");
  CHECK(table.silent_s("b", start + milliseconds(3000)) == Approx(1.5));
  CHECK_FALSE(table.silent_s("c", start));
}

TEST_CASE("a site that speaks regularly is left out after half of the silence") {
  SiteTable table("own", Seconds(2));
  auto now = Clock::now();
  const auto speak = [&](int times, milliseconds gap) {
    for (int k = 0; k < times; ++k) CHECK(table.hear(from("a", 1), now += gap));
  };
  const auto is_there_after = [&](int ms) {
    return table.living("a", now + milliseconds(ms)) != nullptr;
  };
  speak(20, milliseconds(250));  // 19 gaps
  CHECK((is_there_after(1999) && !is_there_after(2000)));
  speak(1, milliseconds(250));
  CHECK((is_there_after(999) && !is_there_after(1000)));
  speak(1, milliseconds(500));  // a longer one counts for a while
  CHECK((is_there_after(1999) && !is_there_after(2000)));
  speak(60, milliseconds(250));  // 0.99^60 of it
  CHECK((is_there_after(999) && !is_there_after(1000)));
  speak(1, milliseconds(1500));  // it was not there
  CHECK((is_there_after(1999) && !is_there_after(2000)));
}

TEST_CASE("a site whose process is gone is not there until it speaks again") {
  SiteTable table("own", Seconds(2));
  const auto now = Clock::now();
  table.lose("a");  // it was never heard of
  CHECK(table.hear(from("a", 1), now));
  table.lose("a");
  CHECK(table.living("a", now) == nullptr);
  CHECK(table.living(now).empty());
  CHECK(table.hear(from("a", 1), now));
  CHECK(table.living("a", now) != nullptr);
}

TEST_CASE("an instance that a later one has replaced is not heard any more") {
  SiteTable table("own", Seconds(2));
  const auto now = Clock::now();
  CHECK(table.hear(from("a", 5), now));
  CHECK(table.hear(from("a", 6), now));
  CHECK_FALSE(table.hear(from("a", 5), now));
  CHECK(table.living("a", now)->incarnation == 6);
}

TEST_CASE("others tell of instances that had this site's name, and are believed of nobody else") {
  SiteTable table("own", Seconds(2));
  const auto now = Clock::now();
  Status status = from("a", 1);
  status.known = {{"own", 7}, {"b", 3}};
  table.hear(status, now);
  CHECK(table.known("own") == 7);
  CHECK(table.known("b") == 0);
  CHECK(table.living("own", now) == nullptr);
  CHECK(table.hear(from("b", 2), now));
}

TEST_CASE("a site does not count itself") {
  SiteTable table("own", Seconds(2));
  const auto now = Clock::now();
  table.hear(from("own", 1), now);
  CHECK(table.living(now).empty());
  CHECK(table.living("own", now) != nullptr);
}

TEST_CASE(
    "a site that has been silent for ten minutes is forgotten, and may come with any number") {
  SiteTable table("own", Seconds(2));
  const auto start = Clock::now();
  table.hear(from("a", 5), start);
  table.hear(from("b", 5), start + std::chrono::seconds(10));
  table.forget(start + std::chrono::seconds(600));
  CHECK(table.known().size() == 2);
  CHECK_FALSE(table.hear(from("a", 4), start + std::chrono::seconds(600)));
  table.forget(start + std::chrono::seconds(601));
  CHECK(table.known("a") == 0);
  CHECK(table.known("b") == 5);
  CHECK_FALSE(table.silent_s("a", start + std::chrono::seconds(601)));
  CHECK(table.latest("a") == nullptr);
  CHECK(table.hear(from("a", 4), start + std::chrono::seconds(602)));
  CHECK(table.known("a") == 4);
}

TEST_CASE("a process that another one has followed is not heard either when both are forgotten") {
  constexpr std::uint64_t later = std::uint64_t{1} << first_generation_bit;
  SiteTable table("own", Seconds(2));
  const auto start = Clock::now();
  table.hear(from("a", 5), start);
  table.hear(from("a", later), start);
  table.forget(start + std::chrono::seconds(601));
  CHECK(table.latest("a") == nullptr);
  CHECK(table.known("a") == later);
  CHECK_FALSE(table.hear(from("a", 5), start + std::chrono::seconds(602)));
  Status status = from("b", 1);
  status.former = {{"own", later}, {"c", 3}};
  table.hear(status, start);
  CHECK(table.known("own") == later);
  CHECK(table.known("c") == 0);
}

TEST_CASE("what was read of a site that is forgotten still counts") {
  SiteHistory history;
  for (const char* name : {"a", "b"}) {
    history.meet(from(name, 5));
    history.note_read(Received{name, 5, {}, nullptr}, 3);
  }
  history.forget([](const std::string& name) { return name == "a"; });
  REQUIRE(history.others().size() == 1);
  CHECK(history.others()[0].name == "b");
  CHECK(history.reads() == 2);
  CHECK(history.median_age() == 3);
}

TEST_CASE("a process that was forgotten and is back is known, and its old messages are old") {
  SiteHistory history;
  Received message{"a", 5, {}, nullptr};
  message.what.number = 3;
  history.meet(from("a", 5));
  CHECK(history.take(message));
  history.forget([](const std::string&) { return true; });
  CHECK(history.others().empty());
  CHECK(history.meet(from("a", 5)));
  CHECK_FALSE(history.take(message));
  CHECK(history.others().size() == 1);
  history.forget([](const std::string& name) { return name == "a"; });
  CHECK_FALSE(history.meet(from("a", 6)));
}

TEST_CASE("of many sites that are gone, none is known") {
  SiteHistory history;
  for (int i = 0; i < 5000; ++i) history.meet(from(fmt::format("s{}", i), 5));
  history.forget([](const std::string& name) { return name != "s7"; });
  CHECK(history.meet(from("s7", 5)));
  CHECK_FALSE(history.meet(from("s8", 5)));
}

TEST_CASE("what a process said earlier and comes later is a sign of life, and no news") {
  SiteTable table("own", Seconds(2));
  const auto start = Clock::now();
  Status begun = from("a", 5), leaving = from("a", 5);
  begun.begun = leaving.begun = leaving.leaving = true;
  table.hear(begun, start);
  table.hear(from("a", 5), start + std::chrono::seconds(1));
  CHECK(table.latest("a")->begun);
  CHECK(table.silent_s("a", start + std::chrono::seconds(1)) == 0.0);
  table.hear(leaving, start);
  table.hear(begun, start);
  CHECK(table.latest("a")->leaving);
  table.hear(from("a", 6), start);  // another process
  CHECK_FALSE(table.latest("a")->begun);
  CHECK_FALSE(table.latest("a")->leaving);
}
