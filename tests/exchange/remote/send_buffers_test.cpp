#include <cstring>
#include <fast/core/memory.hpp>

#include "exchange/remote/messages/send_buffers.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;

namespace {

constexpr std::size_t vector_bytes = 1000;

/// One worker's board, written as SlotExchange does it.
struct Publisher {
  Publisher() {
    const std::size_t bytes = SlotLayout(shape).part_bytes();
    memory = AlignedBuffer(bytes);
    std::memset(memory.data(), 0, bytes);
    board = std::make_shared<SlotBoard>(Region{{memory.data()}, bytes, nullptr}, shape);
  }
  void begin() { board->round(0, sequence + 1) = being_written; }
  void fill(int value) { std::memset(board->payload(0, sequence + 1).data, value, vector_bytes); }
  void end(std::int64_t round) {
    ++sequence;
    board->round(0, sequence) = round;
    board->header(0).publication.sequence = sequence;
  }
  void publish(std::int64_t round, int value) {
    begin();
    fill(value);
    end(round);
  }
  bool holds_only(SendBuffer& buffer, int value) const {
    const std::byte* data =
        buffer.up_to(buffer.part().size_bytes()) + SlotLayout(shape).data_offset();
    return std::all_of(data, data + vector_bytes,
                       [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
  }

  PayloadShape shape{vector_bytes, 1, 1};
  AlignedBuffer memory;
  std::shared_ptr<SlotBoard> board;
  std::uint64_t sequence = 0;
};

}  // namespace

TEST_CASE("a buffer does not change when its slot is written again") {
  Publisher publisher;
  SendBuffers send_buffers(publisher.board, 0);
  publisher.publish(0, 1);
  const auto buffer = send_buffers.buffer(1, 0);
  CHECK(publisher.holds_only(*buffer, 1));
  for (int round = 1; round <= 7; ++round) publisher.publish(round, round + 1);
  CHECK(publisher.holds_only(*buffer, 1));
  CHECK(buffer->is_intact());
}

TEST_CASE("a buffer whose slot is written again before its last byte was copied is not intact") {
  Publisher publisher;
  SendBuffers send_buffers(publisher.board, 0);
  for (int round = 0; round < 3; ++round) publisher.publish(round, round + 1);
  const auto half = send_buffers.buffer(1, 0), whole = send_buffers.buffer(2, 1);
  half->up_to(half->part().size_bytes() / 2);
  CHECK_FALSE(half->is_intact());
  publisher.begin();  // of publication 4, in the slot of 1
  half->up_to(half->part().size_bytes());
  whole->up_to(whole->part().size_bytes());
  CHECK_FALSE(half->is_intact());
  CHECK(whole->is_intact());
  publisher.fill(9);
  publisher.end(0);  // a publication for the same round again
  const auto late = send_buffers.buffer(1, 0);
  late->up_to(late->part().size_bytes());
  CHECK_FALSE(late->is_intact());
}

// A sender that looks at the slot between these two would name the next round with the old
// sequence.
TEST_CASE("a slot whose round is stored before its sequence has a buffer of its own") {
  Publisher publisher;
  SendBuffers send_buffers(publisher.board, 0);
  for (int round = 0; round < 3; ++round) publisher.publish(round, round + 1);
  const auto before = send_buffers.buffer(1, 0);
  CHECK(publisher.holds_only(*before, 1));
  publisher.begin();
  publisher.fill(9);
  publisher.board->round(0, 4) = 3;
  const auto after = send_buffers.buffer(1, 3);
  CHECK(after != before);
  CHECK(publisher.holds_only(*after, 9));
  CHECK(publisher.holds_only(*before, 1));
}

TEST_CASE("readers of one publication share its buffer; a released buffer is used again") {
  Publisher publisher;
  SendBuffers send_buffers(publisher.board, 0);
  publisher.publish(0, 1);
  publisher.publish(1, 2);
  auto first = send_buffers.buffer(1, 0);
  CHECK(send_buffers.buffer(1, 0) == first);
  auto second = send_buffers.buffer(2, 1);
  CHECK(second != first);
  const std::byte* room = first->up_to(1);
  first.reset();
  publisher.publish(2, 3);
  const auto third = send_buffers.buffer(3, 2);
  CHECK(third->up_to(1) == room);
  CHECK(publisher.holds_only(*third, 3));
  CHECK(publisher.holds_only(*second, 2));
}
