// What a site holds for others, and for how long.
#include "sites/node.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "memory_bus.hpp"
#include "support/catch.hpp"

namespace fast::testing {
namespace {

using sites::Content;

constexpr std::size_t bytes = 3 * sites::chunk_bytes;

/// Site "a" holds messages for a reader "r", which asks for single chunks.
struct HeldMessages {
  explicit HeldMessages(bool exact)
      : hub(std::make_shared<MemoryHub>()),
        reader(hub, "r"),
        node(std::make_unique<MemoryBus>(hub, "a"),
             {.site = "a", .about = "model", .message_bytes = bytes, .exact = exact}) {
    reader.listen("run.data.a.r", [this](std::string_view, std::string_view text) {
      const auto chunk = sites::decode_chunk(text);
      if (chunk) (chunk->gone ? gone : come) += 1;
    });
    reader.listen("run.new.a", [this](std::string_view, std::string_view text) {
      const auto status = sites::decode_status(text);
      if (!status) return;
      incarnation = status->incarnation;
      held = static_cast<int>(status->newest.size());
    });
    node.appear();
    node.begin(0, 0);
  }
  ~HeldMessages() { reader.end(); }

  void publish(std::int64_t number) {
    sites::Publication what;
    what.number = number;
    what.bytes = bytes;
    node.publish(what, std::make_shared<AlignedBuffer>(bytes));
  }
  /// True if the chunk comes, false if it is gone.
  bool asks(std::int64_t number, std::size_t index) {
    await([this] { return incarnation != 0; });
    const int before = come, gone_before = gone;
    reader.send("run.get.a", sites::encode(sites::ChunkRequest{"r", incarnation, Content::message,
                                                               number, index, 1}));
    await([&] { return come != before || gone != gone_before; });
    return come != before;
  }
  /// Sends so many requests for a chunk. How many come.
  int given(std::int64_t number, int requests) {
    await([this] { return incarnation != 0; });
    const int before = come, gone_before = gone;
    const auto ask = [&](std::int64_t of) {
      reader.send("run.get.a",
                  sites::encode(sites::ChunkRequest{"r", incarnation, Content::message, of, 0, 1}));
    };
    for (int k = 0; k < requests; ++k) ask(number);
    ask(99);  // is answered after them
    await([&] { return gone != gone_before; });
    return come - before;
  }
  static void await(const std::function<bool()>& is_over) {
    const Deadline deadline(Seconds(10));
    while (!is_over()) {
      REQUIRE_FALSE(deadline.expired());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::shared_ptr<MemoryHub> hub;
  MemoryBus reader;
  std::atomic<std::uint64_t> incarnation = 0;
  std::atomic<int> held = 0, come = 0, gone = 0;
  sites::Node node;
};

TEST_CASE("above staleness 0, a message that is being read is held while newer ones come") {
  HeldMessages site(false);
  for (std::int64_t number = 0; number < 2; ++number) site.publish(number);
  CHECK(site.asks(0, 0));
  site.publish(2);
  site.publish(3);
  CHECK(site.asks(0, 1));
  CHECK_FALSE(site.asks(1, 0));  // nobody has begun to read it
  CHECK(site.asks(2, 0));
  CHECK(site.asks(3, 0));
  for (std::int64_t number = 4; number < 6; ++number) site.publish(number);
  CHECK_FALSE(site.asks(0, 2));  // two older ones at most, the newer of those that are read
  CHECK(site.asks(2, 1));
  CHECK(site.asks(3, 1));
  HeldMessages::await([&] { return site.held == 4; });
}

TEST_CASE("a message that nobody reads on is not held any more") {
  HeldMessages site(false);
  for (std::int64_t number = 0; number < 2; ++number) site.publish(number);
  CHECK(site.asks(0, 0));
  site.publish(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(2300));
  CHECK_FALSE(site.asks(0, 1));
}

TEST_CASE(
    "a state of the next exchange is made once, whoever asks for it, until the weights change") {
  HeldMessages site(true);
  const auto asks = [&] {
    // A wish is heard before what follows it.
    site.reader.send("run.ask.a", sites::encode(Content::state));
    site.reader.send("run.ask.a", sites::encode(Content::message));
    HeldMessages::await([&] { return site.node.takes_whole_request(); });
    return site.node.is_asked_for_state();
  };
  const auto gives = [&](std::int64_t number) {
    sites::Publication what;
    what.content = Content::state;
    what.number = number;
    what.bytes = bytes;
    site.node.publish(what, std::make_shared<AlignedBuffer>(bytes));
  };
  CHECK(asks());
  gives(0);
  CHECK_FALSE(asks());
  site.node.set_progress(1, 3);
  CHECK(asks());
  gives(1);
  CHECK_FALSE(asks());
  site.node.begin(1, 3);
  CHECK(asks());
}

TEST_CASE("an incarnation is later than all that is known, also after the last generation") {
  for (const std::uint64_t known : {1ULL, 5ULL << 54U, 1022ULL << 54U, ~0ULL << 54U, ~0ULL - 1}) {
    const auto hub = std::make_shared<MemoryHub>();
    MemoryBus other(hub, "b");
    std::atomic<std::uint64_t> incarnation = 0;
    const auto hear = [&](std::string_view, std::string_view text) {
      if (const auto status = sites::decode_status(text)) incarnation = status->incarnation;
    };
    other.listen("run.new.a", hear);
    sites::Node node(std::make_unique<MemoryBus>(hub, "a"), {.site = "a", .about = "model"});
    sites::Status status;
    status.run = "run";
    status.site = "b";
    status.incarnation = 1;
    status.known = {{"a", known}};
    other.send("run.beat.b", sites::encode(status));
    HeldMessages::await([&] { return node.living("b").has_value(); });
    node.appear();
    node.begin(0, 0);
    HeldMessages::await([&] { return incarnation != 0; });
    INFO("known " << known);
    CHECK(incarnation > known);
    other.end();
  }
}

TEST_CASE("a site gets each chunk four times at most, and others share 64 in a second") {
  HeldMessages site(true);
  site.publish(0);
  const auto began = Clock::now();
  const int all = site.given(0, 200);
  const double took_s = Seconds(Clock::now() - began).count();
  CHECK(all >= 64);
  CHECK(all <= 64 * (1 + std::floor(took_s)));
  sites::Status status;
  status.run = "run";
  status.site = "r";
  status.incarnation = 1;
  site.reader.send("run.beat.r", sites::encode(status));
  HeldMessages::await([&] { return site.node.living("r").has_value(); });
  const int most = 4 * 3 + 16;  // of three chunks, and as many as one request asks for
  CHECK(site.given(0, 100) == most);
  CHECK(site.given(0, 10) == 0);
  site.publish(1);
  CHECK(site.given(1, 100) == most);
}

TEST_CASE("at staleness 0, two messages are held") {
  HeldMessages site(true);
  for (std::int64_t number = 0; number < 2; ++number) site.publish(number);
  CHECK(site.asks(0, 0));
  site.publish(2);
  CHECK_FALSE(site.asks(0, 1));
  CHECK(site.asks(1, 0));
  CHECK(site.asks(2, 2));
}

}  // namespace
}  // namespace fast::testing
