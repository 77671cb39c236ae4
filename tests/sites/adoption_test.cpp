// Whom a site asks for its weights, and for how long.
#include "sites/adoption.hpp"

#include <fast/algorithm/rules.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "memory_bus.hpp"
#include "support/catch.hpp"

namespace fast::testing {
namespace {

using sites::Content;

/// Site "a", which asks others. They say what they are told to, and have `state` to give.
struct Asking {
  explicit Asking(Seconds patience = Seconds(30))
      : options{.name = "a", .url = {}, .silence = Seconds(60)},
        x(chunks * sites::chunk_bytes / sizeof(double), 1),
        layout({view_of("x", std::span(x))}),
        outer(layout, algorithm::noloco({})),
        node(std::make_unique<MemoryBus>(hub, "a"), {.site = "a",
                                                     .about = about,
                                                     .silence = Seconds(60),
                                                     .state_bytes = outer.state_bytes()}),
        adoption(options, about, node, history, outer, log),
        others(hub, "others") {
    options.patience = patience;
    outer.start(layout);
    state = outer.state();
    others.listen("run.ask.b", [this](std::string_view, std::string_view) { ++asked_b; });
    others.listen("run.ask.c", [this](std::string_view, std::string_view) { ++asked_c; });
    others.listen("run.get.b.*", [this](std::string_view, std::string_view text) {
      if (const auto request = sites::decode_request(text))  // others are probes
        given.emplace_back([this, request = *request] { give(request); });
    });
    others.listen("run.get.c.*", [](std::string_view, std::string_view) {});  // it is there
    node.appear();
  }
  ~Asking() {
    others.end();
    given.clear();
  }

  void say(const std::string& name, std::int64_t next, bool has_state = false) {
    sites::Status status;
    status.run = "run";
    status.site = name;
    status.incarnation = 7;
    status.about = about;
    status.begun = true;
    status.first = status.next = next;
    status.round = next * options.every;
    if (has_state) {
      sites::Publication what;
      what.content = Content::state;
      what.number = next;
      what.round = status.round;
      what.bytes = state->size_bytes();
      what.sha256 =
          sites::hash_of_chunks(sites::chunk_hashes({state->data(), state->size_bytes()}));
      status.newest = {what};
    }
    others.send("run.new." + name, sites::encode(status));
    await([&] {
      const auto heard = node.living(name);
      return heard && heard->next == next && heard->newest.size() == status.newest.size();
    });
  }
  static void await(const std::function<bool()>& is_over) {
    const Deadline deadline(Seconds(60));
    while (!is_over()) {
      REQUIRE_FALSE(deadline.expired());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  static constexpr std::size_t chunks = 2;
  const std::string about = "model";
  sites::SiteOptions options;
  std::vector<double> x;
  ParameterLayout layout;
  sites::OuterStep outer;
  std::shared_ptr<const AlignedBuffer> state;
  std::shared_ptr<MemoryHub> hub = std::make_shared<MemoryHub>();
  sites::Node node;
  sites::SiteHistory history;
  LogSink log;
  sites::Adoption adoption;
  MemoryBus others;
  std::atomic<int> asked_b = 0, asked_c = 0;
  std::vector<std::jthread> given;  ///< requests that are being answered

 private:
  /// Over a slow link.
  void give(const sites::ChunkRequest& request) {
    for (std::size_t k = 0; k < request.count; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
      sites::Chunk chunk{"b", 7, request.content, request.number, request.first + k, false, {}, {}};
      const std::size_t at = chunk.index * sites::chunk_bytes;
      chunk.bytes = {state->data() + at, std::min(sites::chunk_bytes, state->size_bytes() - at)};
      chunk.sha256 = sites::sha256_of(chunk.bytes);
      others.send("run.data.b.a", sites::encode(chunk));
    }
  }
};

TEST_CASE("a site that is asked for its weights stays asked while another one is further") {
  Asking site;
  site.say("b", 100);
  site.say("c", 99);
  CHECK_FALSE(site.adoption.ask_beyond(50));
  Asking::await([&] { return site.asked_b > 0; });
  site.say("c", 101);
  CHECK_FALSE(site.adoption.ask_beyond(50));
  CHECK(site.adoption.asks());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(site.asked_c == 0);
  CHECK_FALSE(site.adoption.ask_beyond(100));  // b is not beyond
  Asking::await([&] { return site.asked_c > 0; });
  CHECK_FALSE(site.adoption.ask_beyond(101));
  CHECK_FALSE(site.adoption.asks());
}

TEST_CASE("a site that gives nothing of its weights is asked no more until it goes on") {
  Asking site(Seconds(0.2));
  site.say("b", 100);
  CHECK_FALSE(site.adoption.ask_beyond(50));
  Asking::await([&] { return !site.adoption.ask_beyond(50) && !site.adoption.asks(); });
  CHECK_FALSE(site.adoption.furthest());
  site.say("c", 60);
  CHECK_FALSE(site.adoption.ask_beyond(50));
  Asking::await([&] { return site.asked_c > 0; });
  site.say("b", 101);
  CHECK(site.adoption.furthest()->site == "c");  // b is not believed for two exchanges
  for (int k = 0; k < 2; ++k) site.history.note_exchange();
  CHECK(site.adoption.furthest()->site == "b");
}

TEST_CASE("a site that joins over a slow link has patience while parts of the weights come") {
  Asking site(Seconds(3));  // the whole takes longer
  site.say("b", 100, true);
  const auto got = site.adoption.await_state();
  REQUIRE(got);
  CHECK(std::ranges::equal(got->bytes->as<std::byte>(), site.state->as<std::byte>()));
}

}  // namespace
}  // namespace fast::testing
