// What a site holds for others, and for how long.
#include "sites/node.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "memory_bus.hpp"
#include "support/catch.hpp"

namespace fast::testing {
namespace {

using sites::Content;

constexpr std::size_t bytes = 3 * sites::chunk_bytes;

/// Its connection may be lost, for what it sends.
struct FalteringBus final : MemoryBus {
  FalteringBus(std::shared_ptr<MemoryHub> hub, std::atomic<bool>& is_up)
      : MemoryBus(std::move(hub), "a"), up(is_up) {}
  bool send(const std::string& subject, const std::string& text) override {
    return up && MemoryBus::send(subject, text);
  }
  std::atomic<bool>& up;
};

/// Site "a" holds messages for a reader "r", which asks for single chunks.
struct HeldMessages {
  explicit HeldMessages(bool exact)
      : hub(std::make_shared<MemoryHub>()),
        reader(hub, "r"),
        node(std::make_unique<FalteringBus>(hub, up),
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

  void publish(std::int64_t number, Content content = Content::message) {
    sites::Publication what;
    what.content = content;
    what.number = number;
    what.bytes = bytes;
    node.publish(what, std::make_shared<AlignedBuffer>(bytes));
  }
  /// True if the chunk comes, false if it is gone.
  bool asks(std::int64_t number, std::size_t index, Content content = Content::message) {
    await([this] { return incarnation != 0; });
    const int before = come, gone_before = gone;
    reader.send("run.get.a.r",
                sites::encode(sites::ChunkRequest{"r", incarnation, content, number, index, 1}));
    await([&] { return come != before || gone != gone_before; });
    return come != before;
  }
  void ask(std::int64_t number, const std::string& subject) {
    await([this] { return incarnation != 0; });
    reader.send(subject, sites::encode(sites::ChunkRequest{"r", incarnation, Content::message,
                                                           number, 0, 1}));
  }
  /// Sends so many requests for a chunk. How many come.
  int given(std::int64_t number, int requests, const std::string& subject = "run.get.a.r") {
    const int before = come, gone_before = gone;
    for (int k = 0; k < requests; ++k) ask(number, subject);
    ask(99, "run.get.a.r");  // is answered after them
    await([&] { return gone != gone_before; });
    return come - before;
  }
  /// Wishes a state. True if the site is to make one.
  bool wishes_state() {
    // A wish is heard before what follows it.
    reader.send("run.ask.a", sites::encode(Content::state));
    reader.send("run.ask.a", sites::encode(Content::message));
    await([&] { return node.takes_whole_request(); });
    return node.is_asked_for_state();
  }
  static void await(const std::function<bool()>& is_over) {
    const Deadline deadline(Seconds(60));
    while (!is_over()) {
      REQUIRE_FALSE(deadline.expired());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::shared_ptr<MemoryHub> hub;
  MemoryBus reader;
  std::atomic<std::uint64_t> incarnation = 0;
  std::atomic<int> held = 0, come = 0, gone = 0;
  std::atomic<bool> up = true;
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
  const auto asks = [&] { return site.wishes_state(); };
  const auto gives = [&](std::int64_t number) { site.publish(number, Content::state); };
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

/// Site "b" beside "a", which has published. At staleness 0, unless it is said.
struct ReadsOn : HeldMessages {
  explicit ReadsOn(bool exact = true)
      : HeldMessages(exact),
        b(std::make_unique<MemoryBus>(hub, "b"), {.site = "b",
                                                  .about = "model",
                                                  .message_bytes = bytes,
                                                  .state_bytes = bytes,
                                                  .exact = exact}) {
    b.appear();
    b.begin(0, 0);
  }
  void await_message(std::int64_t number) {
    await([&] { return b.message("a", number) != nullptr; });
  }
  void publish_and_read(std::int64_t number) {
    publish(number);
    await_message(number);
  }
  /// A process that takes the place of "a", and makes exchange `number` first.
  std::unique_ptr<sites::Node> begin_again(std::int64_t number) {
    auto again = std::make_unique<sites::Node>(
        std::make_unique<MemoryBus>(hub, "a"),
        sites::NodeOptions{.site = "a", .about = "model", .message_bytes = bytes});
    await([&] { return again->living("a").has_value(); });
    again->appear();
    again->begin(number, 0);
    sites::Publication what;
    what.number = number;
    what.bytes = bytes;
    again->publish(what, std::make_shared<AlignedBuffer>(bytes));
    return again;
  }
  sites::Node b;
};

TEST_CASE("a message that came before its exchange is there when its site is a neighbor again") {
  // A rotating graph: b reads a in exchanges 0 and 2, and a is fast.
  ReadsOn sites;
  sites.b.follow({"a"}, 0);
  sites.publish_and_read(0);
  sites.publish_and_read(2);
  sites.b.follow({}, 1);
  const double received = sites.b.bytes_received();
  sites.b.follow({"a"}, 2);
  CHECK(sites.b.message("a", 2) != nullptr);
  CHECK(sites.b.message("a", 0) == nullptr);
  CHECK(sites.b.bytes_received() == received);
}

TEST_CASE("a message that was dropped before its exchange is read again") {
  ReadsOn sites;
  sites.b.follow({"a"}, 0);
  sites.publish_and_read(0);
  sites.b.follow({"a"}, 1);  // its weights were put back: exchange 0 was not made
  CHECK(sites.b.message("a", 0) == nullptr);
  sites.b.follow({"a"}, 0);
  sites.await_message(0);
}

TEST_CASE("above staleness 0, a message is read once, also when its site is a neighbor again") {
  ReadsOn sites(false);
  sites.b.follow({"a"}, 0);
  sites.publish_and_read(0);
  sites.b.follow({}, 0);
  const double received = sites.b.bytes_received();
  sites.b.follow({"a"}, 0);
  sites.publish_and_read(1);
  CHECK(sites.b.bytes_received() == received + bytes);
}

TEST_CASE("a state is read again by a site that asks for it again") {
  ReadsOn sites;
  for (int time = 0; time < 2; ++time) {
    sites.b.ask_for_state("a");
    if (time == 0) sites.publish(0, Content::state);
    HeldMessages::await([&] { return sites.b.state("a") != nullptr; });
    sites.b.forget_state("a");
  }
}

TEST_CASE("above staleness 0, a message older than one that was read is not read") {
  ReadsOn sites(false);
  sites.publish(0);
  sites.publish(1);
  HeldMessages::await([&] {
    const auto a = sites.b.living("a");
    return a && a->newest.size() == 2;
  });
  sites.b.follow({"a"}, 0);
  sites.await_message(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // two beats
  CHECK(sites.b.bytes_received() == bytes);
}

TEST_CASE("messages that an exchange needs first stay while their site goes far ahead") {
  ReadsOn sites;
  sites.b.follow({"a"}, 0);
  for (const std::int64_t number : {0, 1}) sites.publish_and_read(number);
  sites.publish(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // two beats
  CHECK(sites.b.message("a", 0) != nullptr);
  CHECK(sites.b.message("a", 1) != nullptr);
  sites.b.follow({"a"}, 1);
  sites.await_message(2);
}

TEST_CASE("a message of a former process counts where the later one makes no such exchange") {
  ReadsOn sites;
  sites.b.follow({"a"}, 0);
  for (const std::int64_t number : {0, 1}) sites.publish_and_read(number);
  const auto again = sites.begin_again(1);
  HeldMessages::await([&] {
    const auto message = sites.b.message("a", 1);
    return message && message->incarnation == again->incarnation();
  });
  CHECK(sites.b.message("a", 0) != nullptr);
}

TEST_CASE("above staleness 0, a later process is read, also if its numbers are lower") {
  ReadsOn sites(false);
  sites.b.follow({"a"}, 0);
  sites.publish_and_read(100);
  const auto again = sites.begin_again(60);
  HeldMessages::await([&] {
    const auto newest = sites.b.message("a", 0, true);
    return newest && newest->what.number == 60;
  });
}

/// Says what it is told to in the name of site "a", which trains beside site "b".
struct Foreign {
  Foreign()
      : a(hub, "a"),
        b(std::make_unique<MemoryBus>(hub, "b"), {.site = "b",
                                                  .about = "model",
                                                  .silence = Seconds(60),
                                                  .message_bytes = bytes,
                                                  .state_bytes = bytes}) {
    a.listen("run.ask.a", [this](auto, auto) { ++asked; });
    b.appear();
    b.begin(0, 0);
  }
  ~Foreign() { a.end(); }
  void say(Content content) {
    sites::Status status;
    status.run = "run";
    status.site = "a";
    status.incarnation = 1;
    status.about = "model";
    status.begun = true;
    sites::Publication what;
    what.content = content;
    what.number = 0;
    what.bytes = bytes;
    what.sha256 = std::string(64, '0');
    status.newest = {what};
    a.send("run.new.a", sites::encode(status));
  }
  std::shared_ptr<MemoryHub> hub = std::make_shared<MemoryHub>();
  MemoryBus a;
  std::atomic<int> asked = 0;
  sites::Node b;
};

TEST_CASE("a site is asked for its state also while its messages are read") {
  Foreign sites;
  std::atomic<int> requests = 0;
  sites.a.listen("run.get.a.*", [&](auto, auto) { ++requests; });  // it gives nothing
  sites.b.follow({"a"}, 0);
  sites.say(Content::message);
  HeldMessages::await([&] { return requests > 0; });
  sites.b.ask_for_state("a");
  HeldMessages::await([&] { return sites.asked > 0; });
}

TEST_CASE("what a site did not hold is asked for again once the site says that it does") {
  Foreign sites;
  std::atomic<int> requests = 0;
  sites.a.listen("run.get.a.*", [&](std::string_view, std::string_view text) {
    const auto request = sites::decode_request(text);
    if (!request) return;
    ++requests;
    sites::Chunk gone;
    gone.site = "a";
    gone.incarnation = request->incarnation;
    gone.content = request->content;
    gone.number = request->number;
    gone.gone = true;
    sites.a.send("run.data.a.b", sites::encode(gone));
  });
  sites.b.ask_for_state("a");
  sites.say(Content::state);
  HeldMessages::await([&] { return requests == 1 && sites.b.living("a")->newest.empty(); });
  sites.say(Content::state);
  HeldMessages::await([&] { return requests == 2; });
}

TEST_CASE("a state that is being read is not replaced") {
  HeldMessages site(true);
  CHECK(site.wishes_state());
  site.publish(0, Content::state);
  CHECK(site.asks(0, 0, Content::state));
  site.node.set_progress(1, 3);
  CHECK_FALSE(site.wishes_state());
  CHECK(site.asks(0, 1, Content::state));
  // The wish stays.
  HeldMessages::await([&] { return site.node.is_asked_for_state(); });
}

constexpr double site_per_s = (3 + 16) / 4.0;  // of three chunks, and as many as one request
constexpr int site_at_once = 4 * (3 + 16);

TEST_CASE("a site that has had all chunks four times gets them again, by and by") {
  HeldMessages site(true);
  for (const std::int64_t number : {0, 1}) {
    site.publish(number);
    const auto began = Clock::now();
    const int all = site.given(number, 300);
    const double took_s = Seconds(Clock::now() - began).count();
    CHECK(all >= site_at_once);
    CHECK(all <= site_at_once + site_per_s * took_s);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    CHECK(site.given(number, 1) == 1);
  }
}

TEST_CASE("readers that are no sites share 64 chunks a second, and take none of a site's") {
  HeldMessages site(true);
  site.publish(0);
  const auto began = Clock::now();
  const int all = site.given(0, 300, "run.look.a");
  const double took_s = Seconds(Clock::now() - began).count();
  CHECK(all >= 64);
  CHECK(all <= 64 * (1 + took_s));
  CHECK(site.given(0, 100, "run.get.a.s") == 0);  // not its own name
  sites::Status status;
  status.run = "run";
  status.site = "r";
  status.incarnation = 1;
  site.reader.send("run.beat.r", sites::encode(status));
  HeldMessages::await([&] { return site.node.living("r").has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(site.given(0, 100, "run.look.a") == 0);  // the name of a site
  CHECK(site.given(0, 100) >= site_at_once);
}

TEST_CASE("chunks that were not sent count for nothing") {
  HeldMessages site(true);
  site.publish(0);
  HeldMessages::await([&] { return site.incarnation != 0; });
  site.up = false;
  for (int k = 0; k < 300; ++k) site.ask(0, "run.get.a.r");
  site.wishes_state();  // is heard after them
  site.up = true;
  CHECK(site.node.bytes_sent() == 0);
  CHECK(site.given(0, site_at_once) == site_at_once);
  CHECK(site.node.bytes_sent() == static_cast<double>(site_at_once * sites::chunk_bytes));
}

TEST_CASE("a site that speaks another format is told of once") {
  const auto hub = std::make_shared<MemoryHub>();
  MemoryBus other(hub, "b");
  std::mutex mutex;
  std::vector<std::string> said;
  const auto log = [&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    said.emplace_back(text);
  };
  sites::Node node(std::make_unique<MemoryBus>(hub, "a"),
                   {.site = "a", .about = "model", .log = log});
  for (const char* text : {"{}\n", "{\"format\":2}\n", "{\"format\":3}\n", "{\"format\":-1}\n"}) {
    other.send("run.new.c", text);
    other.send("run.beat.b", text);
  }
  sites::Status status;
  status.run = "run";
  status.site = "b";
  status.incarnation = 1;
  other.send("run.beat.b", sites::encode(status));
  HeldMessages::await([&] { return node.living("b").has_value(); });
  other.end();
  const std::lock_guard lock(mutex);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("site b speaks format 2") != std::string::npos);
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
