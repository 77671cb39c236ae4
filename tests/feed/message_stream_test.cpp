#include "feed/sample_messages.hpp"

#include <fast/core/error.hpp>
#include <fast/data/loader.hpp>

#include <future>
#include <thread>

#include "feed/fake_broker.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;
using namespace std::chrono_literals;

namespace {

/// Sample i is {i, 2 i}, its label i % 5.
data::Dataset counted(std::size_t count) {
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < count; ++i) {
    values.insert(values.end(), {static_cast<float>(i), static_cast<float>(2 * i)});
    labels.push_back(static_cast<std::int32_t>(i % 5));
  }
  return {"counted", {2}, std::move(values), std::move(labels), 5};
}

std::unique_ptr<feed::MessageStream> stream_of(FakeServer& server) {
  return std::make_unique<feed::MessageStream>(std::make_unique<FakeBroker>(server), "in",
                                               data::form_of_stream(counted(5), "stream", 100),
                                               1ms);
}

void fill(FakeServer& server, std::size_t count) {
  const data::Dataset all = counted(count);
  for (std::size_t i = 0; i < count; ++i) server.add(feed::message_of(all, i, "in"));
}

}  // namespace

TEST_CASE("messages become samples with their labels, by their numbers") {
  FakeServer server;
  fill(server, 20);
  const auto stream = stream_of(server);
  const auto [samples, numbers] = stream->read(6, 4);
  CHECK(numbers == std::vector<std::uint64_t>{6, 7, 8, 9});
  REQUIRE(samples.size() == 4);
  const auto values = std::get<std::span<const float>>(samples.values());
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(values[2 * i] == static_cast<float>(i + 5));
    CHECK(values[2 * i + 1] == static_cast<float>(2 * (i + 5)));
    CHECK(samples.labels()[i] == static_cast<int>((i + 5) % 5));
  }
  CHECK(stream->first_damage().empty());
}

TEST_CASE("malformed and removed messages are left out, and the first is named") {
  FakeServer server;
  fill(server, 10);
  server.messages[3].headers["X-Label"] = "7";
  server.messages[5].body = "short";
  server.remove(4);
  server.remove(10);
  const auto stream = stream_of(server);
  CHECK(stream->read(1, 10).numbers == std::vector<std::uint64_t>{1, 2, 6, 7, 8, 9});
  CHECK_THAT(stream->first_damage(),
             ContainsSubstring("message 4") || ContainsSubstring("message 3: X-Label is 7"));
  for (std::uint64_t number = 1; number <= 5; ++number) server.remove(number);
  CHECK(stream->extent().first == 6);
  CHECK(stream->read(1, 5).numbers.empty());
}

TEST_CASE("a loader's batches of a stream have the numbers of its order") {
  FakeServer server;
  fill(server, 40);
  server.remove(12);
  for (int rank = 0; rank < 2; ++rank) {
    auto order = std::make_shared<data::StreamOrder>(2, rank, 4, 3);
    order->begin(3, 1, 0);
    data::Loader loader(data::form_of_stream(counted(5), "stream", 24), {{1}, {2}},
                        stream_of(server), order);
    CHECK(loader.rounds() == 3);
    for (std::size_t round = 0; round < 3; ++round) {
      const Batch& batch = loader.batch(1, round);
      std::size_t at = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t sample = 2 + 8 * round + 4 * static_cast<std::size_t>(rank) + i;
        if (sample == 11) continue;  // message 12
        CHECK(batch.labels[at] == static_cast<int>(sample % 5));
        CHECK(batch.inputs[2 * at] == (static_cast<float>(sample) - 1) / 2);
        ++at;
      }
      CHECK(batch.count() == at);
    }
  }
}

TEST_CASE("read() waits for messages to come, and ends when it is interrupted") {
  FakeServer server;
  fill(server, 3);
  const auto stream = stream_of(server);
  auto reading = std::async(std::launch::async, [&] { return stream->read(2, 4).numbers; });
  CHECK(reading.wait_for(20ms) == std::future_status::timeout);
  fill(server, 2);
  CHECK(reading.get() == std::vector<std::uint64_t>{2, 3, 4, 5});
  reading = std::async(std::launch::async, [&] { return stream->read(5, 4).numbers; });
  stream->interrupt();
  CHECK_THROWS_AS(reading.get(), Error);
}

TEST_CASE("a stream of other samples is refused at the beginning, one bad message is not") {
  FakeServer server;
  stream_of(server)->check_begin();  // nothing is there yet
  server.add({"in", "hello", {}, {}});
  CHECK_THROWS_WITH(stream_of(server)->check_begin(),
                    ContainsSubstring("none of the first 1") && ContainsSubstring("message 1"));
  fill(server, 1);
  CHECK_NOTHROW(stream_of(server)->check_begin());
}

TEST_CASE("samples are published in order, some at a time, each once") {
  FakeServer server;
  FakeSink sink(server);
  const auto no_fault = [](const std::string& why) { FAIL(why); };
  const feed::Published done = feed::publish(counted(50), sink, {"in", "a", 8}, no_fault);
  CHECK(done.stored == 50);
  CHECK(done.repeated == 0);
  CHECK(server.most_at_once == 8);
  CHECK(stream_of(server)->read(1, 50).samples.labels()[7] == 2);
  const feed::Published again = feed::publish(counted(60), sink, {"in", "a", 8}, no_fault);
  CHECK(again.stored == 10);
  CHECK(again.repeated == 50);
  CHECK(feed::publish(counted(5), sink, {"in", "b", 8}, no_fault).stored == 5);
  server.most_bytes = 100;
  CHECK_THROWS_WITH(feed::publish(counted(5), sink, {"in", "c", 8}, no_fault),
                    ContainsSubstring("max_payload"));
}
