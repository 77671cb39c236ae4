#include "exchange/remote/pull/remote_reads.hpp"

#include <cstring>
#include <numeric>

#include "exchange/two_hosts.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

constexpr std::size_t length = (std::size_t{2} << 20) + 12345;  // not a multiple of a chunk

struct Reading : testing::TwoHosts {
  Throttle no_limit;
  ChunkedRead read{window, Pair::writer_rank, no_limit};
  std::vector<std::byte> room = std::vector<std::byte>(length + 1);
  std::byte* source = there.board->slot(Pair::writer_rank, 0);
  std::size_t offset = there.board->layout().slot_offset(Pair::writer_rank, 0);

  Reading() {
    for (std::size_t i = 0; i < bytes; ++i) source[i] = static_cast<std::byte>(i * 31 >> 8);
  }
  void finish() {
    repeat_until([&] { read.advance(); }, [&] { return read.done(); });
  }
};

}  // namespace

TEST_CASE("a range is read in chunks, without a gap and no byte more") {
  Reading reading;
  for (int time = 0; time < 2; ++time) {
    std::memset(reading.room.data(), 0, reading.room.size());
    reading.read.begin(reading.offset, reading.room.data(), length);
    CHECK_FALSE(reading.read.done());
    std::size_t before = 0;
    Reading::repeat_until(
        [&] {
          reading.read.advance();
          const std::size_t arrived = reading.read.arrived_bytes();
          if (arrived < before || std::memcmp(reading.room.data(), reading.source, arrived) != 0)
            FAIL(arrived << " bytes after " << before);
          before = arrived;
        },
        [&] { return reading.read.done(); });
    CHECK(reading.read.arrived_bytes() == length);
    CHECK(std::memcmp(reading.room.data(), reading.source, length) == 0);
    CHECK(reading.room[length] == std::byte{0});
  }
}

TEST_CASE("a throttle that is closed holds the next chunks back") {
  Reading reading;
  reading.no_limit = Throttle(1);  // a byte per second
  reading.read.begin(reading.offset, reading.room.data(), length);
  Reading::repeat_until([&] { reading.read.advance(); },
                        [&] { return reading.read.arrived_bytes() > 0; });
  for (int i = 0; i < 100; ++i) reading.read.advance();
  CHECK(reading.read.arrived_bytes() <= ChunkedRead::shortest_chunk);
  CHECK_FALSE(reading.read.done());
}

TEST_CASE("a read that is abandoned ends with the chunks that are under way") {
  Reading reading;
  reading.read.begin(reading.offset, reading.room.data(), length);
  reading.read.advance();
  bool abandoned = false;
  Reading::repeat_until([&] { abandoned = reading.read.abandon(); }, [&] { return abandoned; });
  CHECK_FALSE(reading.read.is_under_way());
  CHECK(reading.read.arrived_bytes() < length);
}

TEST_CASE("a header is read as it is, and one that did not arrive is an error") {
  testing::TwoHosts hosts;
  HeaderRead read(hosts.window, Pair::writer_rank);
  const auto look = [&] {
    bool here = false;
    read.begin();
    hosts.repeat_until([&] { here = read.test(); }, [&] { return here; });
  };
  hosts.publish(7);
  look();
  CHECK_FALSE(read.request().is_under_way());
  CHECK(read.header().publication.sequence.load() == 1);
  CHECK(read.header().publication.rounds[1].load() == 7);
  hosts.remote().constant.magic.store(0);  // as if the connection had broken
  CHECK_THROWS_WITH(look(), Catch::Matchers::Contains("the header of worker 0 did not arrive"));
}
