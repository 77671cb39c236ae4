#include "sites/fetch.hpp"

#include <cstring>
#include <deque>
#include <random>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::sites;
using std::chrono::milliseconds;

namespace {

/// A publication of drawn bytes.
struct Origin {
  std::string bytes;
  Publication what;

  Origin(std::size_t size, std::mt19937& random) : bytes(size, '\0') {
    for (char& c : bytes) c = static_cast<char>(random());
    what.number = 3;
    what.bytes = size;
    what.sha256 = hash_of_chunks(chunk_hashes(std::as_bytes(std::span(bytes))));
  }
  Chunk chunk(std::size_t index) const {
    Chunk chunk{"a", 1, Content::message, 3, index, false, {}, {}};
    chunk.bytes =
        std::as_bytes(std::span(bytes)).subspan(index * chunk_bytes, what.chunk_size(index));
    chunk.sha256 = sha256_of(chunk.bytes);
    return chunk;
  }
};

}  // namespace

TEST_CASE("a publication comes whole over a link that loses and reorders") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20; ++i) {
    const Origin origin(1 + random() % (20 * chunk_bytes), random);
    auto now = Clock::now();
    Fetch fetch(1, origin.what, now);
    const double lost = i % 2 == 0 ? 0 : 0.3;
    std::deque<std::size_t> on_the_way;
    std::size_t steps = 0, asked = 0;
    while (!fetch.is_whole()) {
      REQUIRE(++steps < 10'000);
      now += milliseconds(100);
      while (const auto run = fetch.next(4, now)) {
        for (std::size_t k = run->first; k < run->first + run->count; ++k) {
          ++asked;
          if (std::uniform_real_distribution<>(0, 1)(random) >= lost) on_the_way.push_back(k);
        }
      }
      if (on_the_way.empty()) continue;
      const std::size_t which = random() % on_the_way.size();
      fetch.take(origin.chunk(on_the_way[which]), now);
      on_the_way.erase(on_the_way.begin() + static_cast<std::ptrdiff_t>(which));
    }
    CHECK(fetch.is_as_announced());
    CHECK(std::memcmp(fetch.bytes()->data(), origin.bytes.data(), origin.bytes.size()) == 0);
    if (lost == 0) CHECK(asked == origin.what.chunks());
  }
}

TEST_CASE("a fetch takes nothing that is damaged, of another size, or there already") {
  std::mt19937 random(1);
  const Origin origin(3 * chunk_bytes + 5, random);
  const auto now = Clock::now();
  Fetch fetch(1, origin.what, now);
  fetch.next(9, now);
  Chunk damaged = origin.chunk(0);
  damaged.sha256[0] = damaged.sha256[0] == '0' ? '1' : '0';
  CHECK_FALSE(fetch.take(damaged, now));
  Chunk shorter = origin.chunk(0);
  shorter.bytes = shorter.bytes.first(10);
  shorter.sha256 = sha256_of(shorter.bytes);
  CHECK_FALSE(fetch.take(shorter, now));
  Chunk beyond = origin.chunk(3);
  beyond.index = 4;
  CHECK_FALSE(fetch.take(beyond, now));
  CHECK(fetch.take(origin.chunk(3), now));
  CHECK_FALSE(fetch.take(origin.chunk(3), now));
  CHECK_FALSE(fetch.is_whole());
  Chunk other = origin.chunk(1);
  other.incarnation = 2;
  CHECK_FALSE(fetch.is_of(other));
}

TEST_CASE("no more chunks are under way than the window allows") {
  std::mt19937 random(1);
  const Origin origin(40 * chunk_bytes, random);
  auto now = Clock::now();
  Fetch fetch(1, origin.what, now);
  std::size_t under_way = 0;
  while (const auto run = fetch.next(5, now)) under_way += run->count;
  CHECK(under_way == 5);
  CHECK(fetch.take(origin.chunk(2), now));
  const auto next = fetch.next(5, now);
  REQUIRE(next);
  CHECK((next->first == 5 && next->count == 1));
  CHECK_FALSE(fetch.next(5, now + milliseconds(900)));
  const auto again = fetch.next(5, now + milliseconds(1100));  // nothing has come for a second
  REQUIRE(again);
  CHECK(again->first == 0);
}

TEST_CASE("the window is what arrives in half a second") {
  FetchWindow window;
  CHECK(window.chunks() == 8);
  auto now = Clock::now();
  window.begin(now);
  for (int i = 0; i < 40; ++i) {  // 20 chunks a second
    now += milliseconds(50);
    window.arrived(chunk_bytes, now);
  }
  CHECK(window.chunks() == 10);
  for (int i = 0; i < 20; ++i) {  // one a second
    now += milliseconds(1000);
    window.arrived(chunk_bytes, now);
  }
  CHECK(window.chunks() == 2);
  now += milliseconds(60'000);  // nothing was under way
  window.begin(now);
  for (int i = 0; i < 20; ++i) {
    now += milliseconds(10);
    window.arrived(chunk_bytes, now);
  }
  CHECK(window.chunks() == 16);  // after 2 + 4 + 8 chunks
  for (int i = 0; i < 35; ++i) {
    now += milliseconds(10);
    window.arrived(chunk_bytes, now);
  }
  CHECK(window.chunks() == 50);
  for (int i = 0; i < 50; ++i) window.arrived(chunk_bytes, now);  // what was held up comes at once
  CHECK(window.chunks() <= 128);
  for (int i = 0; i < 40; ++i) {  // 20 chunks a second
    now += milliseconds(50);
    window.arrived(chunk_bytes, now);
  }
  CHECK(window.chunks() == 10);
}

TEST_CASE("the delay of a publication is that from its first request to its first chunk") {
  std::mt19937 random(1);
  const Origin origin(3 * chunk_bytes, random);
  const auto start = Clock::now();
  Fetch fetch(1, origin.what, start);
  fetch.next(1, start + milliseconds(100));
  fetch.next(1, start + milliseconds(1500));  // once more, as nothing has come
  CHECK_FALSE(fetch.delay());
  fetch.take(origin.chunk(0), start + milliseconds(1800));
  fetch.next(2, start + milliseconds(1900));
  fetch.take(origin.chunk(1), start + milliseconds(1950));
  REQUIRE(fetch.delay());
  CHECK(fetch.delay()->count() == Approx(1.7));
}

TEST_CASE(
    "chunks that do not come are asked for after longer and longer times, or after equal ones") {
  std::mt19937 random(2);
  const Origin origin(chunk_bytes, random);
  for (const bool evenly : {false, true}) {
    auto now = Clock::now();
    Fetch fetch(1, origin.what, now);
    if (evenly) fetch.ask_evenly();
    int asked = 0;
    for (int k = 0; k < 150; ++k, now += milliseconds(100)) asked += fetch.next(1, now) ? 1 : 0;
    CHECK(asked == (evenly ? 14 : 4));  // each 1.1 s; 0, 1.1, 3.2 and 7.3 s
  }
}
