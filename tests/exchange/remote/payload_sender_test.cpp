// Rank 0 sends, rank 1 receives.
#include "exchange/remote/messages/sending.hpp"

#include <cstring>

#include "exchange/pair.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

constexpr std::size_t payload_bytes = (std::size_t{6} << 20) + 100;

struct OneWay {
  Pair pair{payload_bytes};
  mpi::Messages messages{testing::world(), Deadline(Seconds(20))};
  SlotExchange exchange = pair.end(Pair::writer_rank, testing::staleness(unbounded_staleness));
  RemoteEdges edges{pair.board, Pair::writer_rank, [](std::int64_t) { return RoundEdges{}; },
                    0,          Throttle(),        SendBuffers(pair.board, Pair::writer_rank)};
  bool sends = testing::world().rank() == 0;

  template <class Condition>
  static void await(const Condition& holds) {
    const Deadline deadline(Seconds(20));
    bool held = false;
    while (!(held = holds()) && !deadline.expired()) continue;
    REQUIRE(held);
  }
};

}  // namespace

TEST_CASE("a long payload arrives in parts, and its buffer is released after the last one") {
  OneWay one_way;
  const std::size_t size = one_way.pair.board->layout().message_bytes();
  if (one_way.sends) {
    testing::write(one_way.exchange, 5, payload_bytes);
    PayloadSender sender(one_way.messages, 1, one_way.edges.throttle);
    sender.begin(one_way.edges.send_buffers.buffer(1, 5));
    OneWay::await([&] {
      sender.start_parts();
      sender.remove_done();
      return sender.all_started() && sender.release();
    });
  } else {
    std::vector<std::byte> room(size);
    for (std::size_t offset = 0; offset < size; offset += part_bytes) {
      auto part = one_way.messages.receive(0, publication_tag, room.data() + offset,
                                           std::min(part_bytes, size - offset));
      CHECK(part.wait(Deadline(Seconds(20))));
    }
    CHECK(testing::whole(room.data(), size));
    CHECK(room[0] == std::byte{5});
  }
}

TEST_CASE("a few frames are sent without a receiver, and the next one waits for it") {
  OneWay one_way;
  const auto& world = testing::world();
  if (one_way.sends) {
    FrameSender frames(one_way.edges, one_way.messages, 1);
    std::size_t sent = 0;
    for (; frames.is_ready() && sent < 100; ++sent) {
      Frame frame;
      frame.until = static_cast<std::int64_t>(sent);
      frames.send(frame);
    }
    CHECK(sent == FrameSender::most_under_way);
    CHECK_FALSE(frames.done());
    world.barrier(Deadline(Seconds(20)), "a test");
    OneWay::await([&] { return frames.done(); });
  } else {
    world.barrier(Deadline(Seconds(20)), "a test");
    for (std::size_t k = 0; k < FrameSender::most_under_way; ++k) {
      Frame frame;
      CHECK(one_way.messages.receive(0, publication_tag, &frame, sizeof frame)
                .wait(Deadline(Seconds(20))));
      CHECK(frame.until == static_cast<std::int64_t>(k));
    }
  }
}
