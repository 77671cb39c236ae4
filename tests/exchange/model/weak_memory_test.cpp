// The checker against programs whose outcomes are known: Alglave, Maranget and Tautschnig, Herding
// cats, TOPLAS 2014; Lahav and others, Repairing sequential consistency in C/C++11, PLDI 2017.
#include "exchange/model/weak_memory.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace fast::testing::weak;

namespace {

using Order = std::memory_order;
constexpr Order relaxed = std::memory_order_relaxed, acquire = std::memory_order_acquire,
                release = std::memory_order_release;

struct TwoWords {
  Memory memory;
  Atomic<Value> x{"x"}, y{"y"};
};

/// True when the threads may read the values of `outcome`, one thread's after the other's.
bool may_read(const Values& outcome, const std::vector<std::function<Values()>>& codes) {
  std::vector<Thread> threads;
  for (const auto& code : codes) {
    Thread& thread = threads.emplace_back();
    thread.stages.emplace_back([code](const Values&) { return code(); });
  }
  const Outcomes all = explore(threads);
  return std::any_of(all.ends.begin(), all.ends.end(), [&](const std::vector<Values>& end) {
    Values joined;
    for (const Values& values : end) joined.insert(joined.end(), values.begin(), values.end());
    return joined == outcome;
  });
}

bool passes_old_message(Order of_store, Order of_load) {
  TwoWords m;
  return may_read({1, 0}, {[&] {
                             m.x.store(1, relaxed);
                             m.y.store(1, of_store);
                             return Values{};
                           },
                           [&] {
                             const Value flag = m.y.load(of_load);
                             return Values{flag, m.x.load(relaxed)};
                           }});
}

bool passes_old_message_by_fences(bool orders_stores, bool orders_loads) {
  TwoWords m;
  return may_read({1, 0}, {[&] {
                             m.x.store(1, relaxed);
                             if (orders_stores) Fences::order_stores();
                             m.y.store(1, relaxed);
                             return Values{};
                           },
                           [&] {
                             const Value flag = m.y.load(relaxed);
                             if (orders_loads) Fences::order_loads();
                             return Values{flag, m.x.load(relaxed)};
                           }});
}

/// Both threads store, then read the other's word.
bool both_miss(Order of_store, Order of_load, bool fence) {
  TwoWords m;
  const auto side = [=](Atomic<Value>& own, Atomic<Value>& other) {
    return [&own, &other, of_store, of_load, fence] {
      own.store(1, of_store);
      if (fence) Fences::order_all();
      return Values{other.load(of_load)};
    };
  };
  return may_read({0, 0}, {side(m.x, m.y), side(m.y, m.x)});
}

/// Both threads read, then store to the other's word.
bool both_read_what_follows(bool later, Order of_store) {
  TwoWords m;
  const auto side = [=](Atomic<Value>& from, Atomic<Value>& to) {
    return [&from, &to, later, of_store] {
      if (later) {
        const Later value = from.load_later();
        to.store(1, of_store);
        return Values{value.get()};
      }
      const Value value = from.load(relaxed);
      to.store(1, of_store);
      return Values{value};
    };
  };
  return may_read({1, 1}, {side(m.x, m.y), side(m.y, m.x)});
}

/// Two threads see two independent stores in different order.
bool readers_disagree(Order of_load, bool fence) {
  TwoWords m;
  const auto writer = [](Atomic<Value>& word) {
    return [&word] {
      word.store(1, release);
      return Values{};
    };
  };
  const auto reader = [=](const Atomic<Value>& first, const Atomic<Value>& second) {
    return [&first, &second, of_load, fence] {
      const Value one = first.load(of_load);
      if (fence) Fences::order_all();
      return Values{one, second.load(of_load)};
    };
  };
  return may_read({1, 0, 1, 0}, {writer(m.x), writer(m.y), reader(m.x, m.y), reader(m.y, m.x)});
}

/// x is passed on by a second thread.
bool loses_what_was_passed_on(Order of_store, Order of_load) {
  TwoWords m;
  return may_read({1, 1, 0}, {[&] {
                                m.x.store(1, relaxed);
                                return Values{};
                              },
                              [&] {
                                const Value seen = m.x.load(relaxed);
                                m.y.store(1, of_store);
                                return Values{seen};
                              },
                              [&] {
                                const Value flag = m.y.load(of_load);
                                return Values{flag, m.x.load(relaxed)};
                              }});
}

}  // namespace

TEST_CASE("message passing needs release and acquire, or a fence on either side") {
  CHECK(passes_old_message(relaxed, relaxed));
  CHECK(passes_old_message(release, relaxed));
  CHECK(passes_old_message(relaxed, acquire));
  CHECK_FALSE(passes_old_message(release, acquire));
  CHECK(passes_old_message_by_fences(false, false));
  CHECK(passes_old_message_by_fences(true, false));
  CHECK(passes_old_message_by_fences(false, true));
  CHECK_FALSE(passes_old_message_by_fences(true, true));
}

TEST_CASE("store buffering needs a full fence") {
  CHECK(both_miss(relaxed, relaxed, false));
  CHECK(both_miss(release, acquire, false));
  CHECK_FALSE(both_miss(relaxed, relaxed, true));
}

TEST_CASE("load buffering is seen with later loads alone, and ended by a release") {
  CHECK_FALSE(both_read_what_follows(false, relaxed));  // the limit of this checker
  CHECK(both_read_what_follows(true, relaxed));
  CHECK_FALSE(both_read_what_follows(true, release));
}

TEST_CASE("independent reads of independent writes may disagree but for full fences") {
  CHECK(readers_disagree(relaxed, false));
  CHECK(readers_disagree(acquire, false));
  CHECK_FALSE(readers_disagree(relaxed, true));
}

TEST_CASE("release and acquire are cumulative") {
  CHECK(loses_what_was_passed_on(relaxed, relaxed));
  CHECK(loses_what_was_passed_on(relaxed, acquire));
  CHECK_FALSE(loses_what_was_passed_on(release, acquire));
}

TEST_CASE("one location is coherent") {
  const auto reads = [](const Values& outcome) {
    TwoWords m;
    return may_read(outcome, {[&] {
                                m.x.store(1, relaxed);
                                m.x.store(2, relaxed);
                                return Values{};
                              },
                              [&] {
                                const Value first = m.x.load(relaxed);
                                return Values{first, m.x.load(relaxed)};
                              }});
  };
  CHECK(reads({1, 2}));
  CHECK(reads({0, 2}));
  CHECK_FALSE(reads({2, 1}));
  CHECK_FALSE(reads({1, 0}));
}

TEST_CASE("2+2W: two threads may each be overtaken, but for full fences") {
  const auto both_lose = [](bool fence) {
    TwoWords m;
    const auto side = [fence](Atomic<Value>& first, Atomic<Value>& second, Value value) {
      return [&first, &second, value, fence] {
        first.store(value, relaxed);
        if (fence) Fences::order_all();
        second.store(value + 1, relaxed);
        return Values{};
      };
    };
    // The later of the values of each word, by a thread that comes after both.
    const auto last = [](const Atomic<Value>& word) {
      return [&word] {
        const Value before = word.load(relaxed);
        return Values{before, word.load(relaxed)};
      };
    };
    // x: 2 of the second thread, then 1 of the first; y the same.
    return may_read({2, 1, 2, 1}, {side(m.x, m.y, 1), side(m.y, m.x, 1), last(m.x), last(m.y)});
  };
  CHECK(both_lose(false));
  CHECK_FALSE(both_lose(true));
}

TEST_CASE("updates lose nothing, and continue a release sequence") {
  TwoWords m;
  const auto add = [&] { return Values{m.x.fetch_add(1, relaxed)}; };
  CHECK(may_read({0, 1}, {add, add}));
  CHECK_FALSE(may_read({0, 0}, {add, add}));
  const auto read = [&] {
    const Value flag = m.y.load(acquire);
    return Values{flag, m.x.load(relaxed)};
  };
  const auto publish = [&] {
    m.x.store(1, relaxed);
    m.y.store(1, release);
    return Values{};
  };
  CHECK_FALSE(
      may_read({1, 2, 0}, {publish, [&] { return Values{m.y.fetch_add(1, relaxed)}; }, read}));
}

TEST_CASE("a demand that is not met is reported with the run before it") {
  TwoWords m;
  const Thread writer{{[&](const Values&) {
    m.x.store(1, relaxed);
    m.y.store(1, relaxed);
    return Values{};
  }}};
  const Thread reader{{[&](const Values&) {
    wait_until(m.y.load(acquire) == 1);
    demand(m.x.load(relaxed) == 1, "x is old");
    return Values{};
  }}};
  const Outcomes all = explore({writer, reader});
  CHECK_THAT(all.violation, Catch::Matchers::StartsWith("x is old\n") &&
                                Catch::Matchers::Contains("store y") &&
                                Catch::Matchers::EndsWith("load x -> 0"));
  CHECK(all.sites.size() == 1);
}
