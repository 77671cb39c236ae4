// Messages and answers without a server: what is acknowledged, and when.
#include "fast_serve/stream_scorer.hpp"

#include <deque>
#include <fast/core/error.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "serve/models.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;
using namespace std::chrono_literals;

namespace {

const nn::ModelSpec scored_model = nn::mlp({4, 8, 3});

/// Delivers what is not acknowledged again when it is asked to.
class FakeSource final : public stream::Source {
 public:
  void add(std::string body, stream::Headers headers = {}) {
    const auto number = static_cast<std::uint64_t>(all.size() + 1);
    all.push_back(
        {"in", std::move(body), std::move(headers), number, 1000 + 7 * std::int64_t(number)});
    waiting.push_back(all.size() - 1);
  }
  void deliver_again() {
    waiting.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!acknowledged.contains(all[i].sequence)) waiting.push_back(i);
    }
  }
  std::vector<stream::Message> fetch(std::size_t most, std::chrono::milliseconds) override {
    std::this_thread::sleep_for(fetch_takes);
    std::vector<stream::Message> found;
    while (!waiting.empty() && found.size() < most) {
      found.push_back(all[waiting.front()]);
      waiting.pop_front();
    }
    largest = std::max(largest, found.size());
    return found;
  }
  void acknowledge(const stream::Message& message) override {
    acknowledged.insert(message.sequence);
  }
  std::uint64_t acknowledged_before() const override { return 0; }

  std::vector<stream::Message> all;
  std::deque<std::size_t> waiting;
  std::set<std::uint64_t> acknowledged;
  std::size_t largest = 0;
  std::chrono::milliseconds fetch_takes{0};
};

/// A stream with a duplicate window without an end.
class FakeSink final : public stream::Sink {
 public:
  std::vector<stream::Stored> publish(std::span<const stream::Outgoing> messages) override {
    std::vector<stream::Stored> stored;
    for (const stream::Outgoing& message : messages) {
      const bool is_new = ids.insert(message.id).second;
      if (is_new) answers.push_back(message);
      stored.push_back(is_new ? stream::Stored::now : stream::Stored::before);
    }
    if (fails_after_it) fail(ErrorKind::resource, "the acknowledgment is lost");
    return stored;
  }
  void interrupt() override {}
  std::size_t most_bytes() const override { return limit; }

  std::set<std::string> ids;
  std::vector<stream::Outgoing> answers;
  bool fails_after_it = false;
  std::size_t limit = 1 << 20;
};

struct Scored {
  explicit Scored(serve::BatchOptions batching = {64, 0us, 1}, std::size_t batch = 10,
                  std::chrono::milliseconds known_for = {})
      : service({100}, batching),
        scorer(service, source, sink, {"m", "out", "c", batch, {}, known_for}) {
    service.add("m", {}).install(version_of(scored_model, 1));
  }
  serve::Service service;
  FakeSource source;
  FakeSink sink;
  serve::StreamScorer scorer;
};

std::string raw_sample(std::uint64_t seed) {
  const auto values = random_values(4, seed);
  return {reinterpret_cast<const char*>(values.data()), 16};
}

const stream::Headers raw_headers{{"Content-Type", "application/octet-stream"}};

}  // namespace

TEST_CASE("each message has the network's answer, which names message and version") {
  Scored scored;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) scored.source.add(raw_sample(seed), raw_headers);
  scored.source.add(R"({"instances": [[1, 2, 3, 4]]})", {{"Nats-Msg-Id", "own"}});
  while (scored.scorer.turn(0ms) > 0) {
  }
  REQUIRE(scored.sink.answers.size() == 26);
  CHECK(scored.source.largest == 10);
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    const stream::Outgoing& answer = scored.sink.answers[seed - 1];
    CHECK(answer.subject == "out");
    CHECK(answer.headers.at("X-Answer-To") == std::to_string(seed));
    CHECK(answer.headers.at("X-Status") == "200");
    CHECK(answer.headers.at("X-Model-Version") == version_of(scored_model, 1)->hash());
    const auto logits = logits_of(scored_model, 1, random_values(4, seed), 1);
    REQUIRE(answer.body.size() == 12);
    for (std::size_t i = 0; i < 3; ++i) {
      float found = 0;
      std::memcpy(&found, answer.body.data() + 4 * i, 4);
      CHECK(found == Approx(logits[i]).margin(1e-5));
    }
  }
  const stream::Outgoing& last = scored.sink.answers.back();
  CHECK(nlohmann::json::parse(last.body).at("predictions").size() == 1);
  CHECK(last.headers.at("X-Message-Id") == "own");
  CHECK(scored.source.acknowledged.size() == 26);
}

TEST_CASE("a message whose headers cannot be read is refused, and the others are answered") {
  Scored scored;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) scored.source.add(raw_sample(seed), raw_headers);
  scored.source.all[1].headers.clear();
  scored.source.all[1].has_damaged_headers = true;
  CHECK(scored.scorer.turn(0ms) == 3);
  REQUIRE(scored.sink.answers.size() == 3);
  for (const std::size_t i : {0, 2}) CHECK(scored.sink.answers[i].headers.at("X-Status") == "200");
  CHECK(scored.sink.answers[1].headers.at("X-Status") == "400");
  CHECK_THAT(scored.sink.answers[1].body, ContainsSubstring("its headers cannot be read"));
}

TEST_CASE("messages that were held for longer than identities are known are not answered") {
  Scored scored({64, 0us, 1}, 10, 2000ms);
  scored.source.add(raw_sample(1), raw_headers);
  scored.source.fetch_takes = 2500ms;
  CHECK(scored.scorer.turn(0ms) == 1);
  CHECK(scored.sink.answers.empty());
  CHECK(scored.source.acknowledged.empty());
  scored.source.fetch_takes = 0ms;
  scored.source.deliver_again();
  CHECK(scored.scorer.turn(0ms) == 1);
  CHECK(scored.sink.answers.size() == 1);
}

TEST_CASE("messages whose answers are not known to be stored are not acknowledged, nor doubled") {
  Scored scored;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) scored.source.add(raw_sample(seed), raw_headers);
  scored.sink.fails_after_it = true;
  CHECK_THROWS_AS(scored.scorer.turn(0ms), Error);
  CHECK(scored.source.acknowledged.empty());
  CHECK(scored.sink.answers.size() == 5);
  scored.sink.fails_after_it = false;
  scored.source.deliver_again();
  scored.service.find("m")->install(version_of(scored_model, 2));
  CHECK(scored.scorer.turn(0ms) == 5);
  CHECK(scored.sink.answers.size() == 5);
  CHECK(scored.source.acknowledged.size() == 5);
  CHECK_THAT(scored.service.metrics().text(),
             ContainsSubstring(R"(fast_serve_stream_repeated_total{model="m"} 5)"));
}

TEST_CASE(
    "answers of an earlier scorer are not repeated, even if their stream has forgotten them") {
  Scored before;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) before.source.add(raw_sample(seed), raw_headers);
  before.sink.fails_after_it = true;
  CHECK_THROWS_AS(before.scorer.turn(0ms), Error);
  for (std::uint64_t seed = 6; seed <= 8; ++seed) before.source.add(raw_sample(seed), raw_headers);
  before.source.deliver_again();
  FakeSink forgetful;
  serve::StreamScorer next(before.service, before.source, forgetful,
                           {"m", "out", "c", 10, before.sink.ids});
  CHECK(next.turn(0ms) == 8);
  CHECK(forgetful.answers.size() == 3);
  CHECK(before.source.acknowledged.size() == 8);
}

TEST_CASE("identities of answers name the consumer and the number of the message") {
  Scored scored;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) scored.source.add(raw_sample(seed), raw_headers);
  while (scored.scorer.turn(0ms) > 0) {
  }
  REQUIRE(scored.sink.answers.size() == 12);
  CHECK(serve::answered_message(scored.sink.answers[0].id, "c") == 1);
  CHECK(serve::answered_message(scored.sink.answers[11].id, "c") == 12);
  CHECK_FALSE(serve::answered_message(scored.sink.answers[0].id, "d").has_value());
  for (const char* other : {"", "c", "c.1", "c.x.1", "c.1.2.3", "cc.1.2"})
    CHECK_FALSE(serve::answered_message(other, "c").has_value());
}

TEST_CASE("messages of one number in a stream that was made anew have answers of their own") {
  Scored scored;
  scored.source.add(raw_sample(1), raw_headers);
  scored.scorer.turn(0ms);
  scored.source.all[0].stored_ns += 1;
  scored.source.acknowledged.clear();
  scored.source.deliver_again();
  scored.scorer.turn(0ms);
  CHECK(scored.sink.answers.size() == 2);
}

TEST_CASE("a message's own id is repeated in its answer, unless it is long") {
  Scored scored;
  for (const std::size_t length : {1, 256, 257, 60'000}) {
    stream::Headers headers = raw_headers;
    headers["Nats-Msg-Id"] = std::string(length, 'x');
    scored.source.add(raw_sample(length), headers);
  }
  CHECK(scored.scorer.turn(0ms) == 4);
  REQUIRE(scored.sink.answers.size() == 4);
  CHECK(scored.sink.answers[0].headers.at("X-Message-Id").size() == 1);
  CHECK(scored.sink.answers[1].headers.at("X-Message-Id").size() == 256);
  CHECK_FALSE(scored.sink.answers[2].headers.contains("X-Message-Id"));
  CHECK_FALSE(scored.sink.answers[3].headers.contains("X-Message-Id"));
}

TEST_CASE("a malformed message has an answer that says why, and is acknowledged") {
  Scored scored;
  scored.source.add("{");
  scored.source.add("abc", raw_headers);
  scored.source.add(raw_sample(1), {{"Content-Type", "text/plain"}});
  scored.source.add(raw_sample(1), raw_headers);
  CHECK(scored.scorer.turn(0ms) == 4);
  REQUIRE(scored.sink.answers.size() == 4);
  for (const auto& [index, status] :
       {std::pair<std::size_t, const char*>{0, "400"}, {1, "400"}, {2, "415"}}) {
    const stream::Outgoing& answer = scored.sink.answers[index];
    CHECK(answer.headers.at("X-Status") == status);
    CHECK_FALSE(nlohmann::json::parse(answer.body).at("error").get<std::string>().empty());
  }
  CHECK(scored.sink.answers[1].headers.contains("X-Model-Version"));
  CHECK(scored.sink.answers[3].headers.at("X-Status") == "200");
  CHECK(scored.source.acknowledged.size() == 4);
}

TEST_CASE("an answer that is longer than messages may be is replaced by an error") {
  Scored scored;
  scored.sink.limit = 2000;
  nlohmann::json many;
  for (int i = 0; i < 100; ++i) many["instances"].push_back({1, 2, 3, 4});
  scored.source.add(many.dump());
  scored.scorer.turn(0ms);
  REQUIRE(scored.sink.answers.size() == 1);
  CHECK(scored.sink.answers[0].headers.at("X-Status") == "413");
}

TEST_CASE("the end leaves messages that cannot be computed in time to the next scorer") {
  // One sample of a batch of 64 waits for a minute.
  Scored scored({64, 60s, 1});
  scored.source.add(raw_sample(1), raw_headers);
  scored.scorer.start([](const std::string&) {});
  while (scored.service.metrics().text().find("fast_serve_waiting_samples 1\n") ==
         std::string::npos) {
    std::this_thread::yield();
  }
  CHECK_FALSE(scored.scorer.end(10ms));
  CHECK(scored.sink.answers.empty());
  CHECK(scored.source.acknowledged.empty());
}

TEST_CASE("a scorer that fails says why") {
  Scored scored;
  scored.source.add(raw_sample(1), raw_headers);
  scored.sink.fails_after_it = true;
  std::promise<std::string> why;
  scored.scorer.start([&](const std::string& text) { why.set_value(text); });
  auto told = why.get_future();
  REQUIRE(told.wait_for(30s) == std::future_status::ready);
  CHECK_THAT(told.get(), ContainsSubstring("the acknowledgment is lost"));
  CHECK_FALSE(scored.scorer.end(30s));
}
