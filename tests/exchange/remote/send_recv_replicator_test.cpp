// Worker 0 publishes on rank 0, worker 1 reads on rank 1: two ranks with nothing but messages
// between them.
#include "exchange/remote/messages/send_recv_replicator.hpp"

#include "exchange/pair.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

/// Whether worker 1 reads worker 0 in a round.
using Due = bool (*)(std::int64_t round);

/// This rank's end: its board, in which the other worker is a mirror.
struct End {
  End(std::size_t size, Due is_due) : End(PayloadShape{size, 1, 0}, is_due) {}
  End(const PayloadShape& shape, Due is_due)
      : bytes(shape.vector_bytes), due(is_due), pair(shape) {}

  std::size_t bytes;
  Due due;
  PayloadPart part{};
  std::vector<PayloadPart> own{};  ///< of the one edge, if not empty
  int rank = testing::world().rank(), other = 1 - rank;
  Pair pair;
  mpi::Messages messages{testing::world(), Deadline(Seconds(20))};
  /// The writer does not wait, as if it suspected its reader.
  SlotExchange exchange = pair.end(
      rank, testing::staleness(rank == Pair::writer_rank ? unbounded_staleness : std::int64_t{0}));
  RemoteEdges edges{pair.board,
                    rank,
                    [this](std::int64_t round) {
                      if (!due(round)) return RoundEdges{};
                      if (rank == Pair::writer_rank)
                        return RoundEdges{{}, {Pair::reader_rank}, part, {}, own};
                      return RoundEdges{{Pair::writer_rank}, {}, part, own, {}};
                    },
                    0,
                    Throttle(),
                    SendBuffers(pair.board, rank)};
  SendRecvReplicator stream{edges, messages, other};

  WorkerHeader& mirror() const { return pair.board->header(other); }

  template <class Condition>
  void advance_until(const Condition& holds) {
    const Deadline deadline(Seconds(20));
    while (!holds() && !deadline.expired()) stream.advance();
    REQUIRE(holds());
  }
  void await_consumed(std::int64_t rounds) {
    advance_until([&] { return mirror().reading.consumed.load() >= rounds; });
  }
  void await_publications(std::uint64_t count) {
    advance_until([&] { return mirror().publication.sequence.load() >= count; });
  }
  void publish(std::int64_t round) { testing::write(exchange, round, bytes); }
  void expect_present(std::int64_t round) {
    const Arrival arrival = exchange.fetch(round).front();
    CHECK(arrival.state == Arrival::State::present);
    CHECK(testing::whole(arrival.payload.data, bytes));
    CHECK(arrival.payload.data[0] == static_cast<std::byte>(round));
    CHECK(exchange.is_intact(arrival));
    exchange.complete(round + 1);
  }
  void close() {
    stream.close();
    advance_until([&] { return stream.closed(); });
  }
};

/// In a frame's message, and in parts.
constexpr std::size_t sizes[] = {1000, std::size_t{3} << 20};

}  // namespace

TEST_CASE("publications come one after the other, each once") {
  for (const std::size_t size : sizes) {
    End end(size, [](std::int64_t) { return true; });
    for (std::int64_t round = 0; round < 5; ++round) {
      if (end.rank == Pair::writer_rank) {
        end.publish(round);
        end.await_consumed(round + 1);
      } else {
        end.await_publications(static_cast<std::uint64_t>(round) + 1);
        end.expect_present(round);
      }
    }
    end.close();
    if (end.rank == Pair::reader_rank) CHECK(end.mirror().publication.sequence.load() == 5);
  }
}

TEST_CASE("a publisher sends no more than what the round's edges carry") {
  for (const std::size_t size : sizes) {
    End end(size, [](std::int64_t) { return true; });
    end.part = {size / 3, size / 3 * 2 + 1};
    if (end.rank == Pair::writer_rank) {
      end.publish(1);
      end.await_consumed(2);
    } else {
      end.exchange.complete(1);
      end.await_publications(1);
      const Arrival arrival = end.exchange.fetch(1).front();
      CHECK(arrival.state == Arrival::State::present);
      std::size_t sent = 0;
      for (std::size_t i = 0; i < size; ++i) {
        const bool carried = end.part.begin <= i && i < end.part.end;
        sent += arrival.payload.data[i] == (carried ? std::byte{1} : std::byte{0}) ? 1 : 0;
      }
      CHECK(sent == size);
      end.exchange.complete(2);
    }
    end.close();
  }
}

TEST_CASE("an edge of its own part carries the scalars and that part, and nothing between them") {
  for (const std::size_t size : sizes) {
    const PayloadShape shape{size, 3, 3};
    const std::size_t stride = shape.stride_bytes();
    for (std::size_t vector = 0; vector < 3; ++vector) {
      End end(shape, [](std::int64_t) { return true; });
      end.own = {{vector * stride, vector * stride + size}};
      const SlotLayout& layout = end.pair.board->layout();
      if (end.rank == Pair::writer_rank) {
        const MutablePayload payload = end.exchange.acquire();
        std::memset(payload.scalars, 7, layout.message_bytes());  // what is between them, too
        end.exchange.publish(0);
        end.await_consumed(1);
      } else {
        end.await_publications(1);
        const Arrival arrival = end.exchange.fetch(0).front();
        REQUIRE(arrival.state == Arrival::State::present);
        const auto* slot = reinterpret_cast<const std::byte*>(arrival.payload.scalars);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < layout.message_bytes(); ++i) {
          const std::size_t begin = layout.data_offset() + vector * stride;
          const bool carried = i < 3 * sizeof(double) || (begin <= i && i < begin + size);
          wrong += slot[i] == (carried ? std::byte{7} : std::byte{0}) ? 0 : 1;
        }
        INFO("vector " << vector << " of " << size << " bytes");
        CHECK(wrong == 0);
        end.exchange.complete(1);
      }
      end.close();
    }
  }
}

TEST_CASE("a reader whose round is gone is passed the newest, though that is not for it") {
  for (const std::size_t size : sizes) {
    End end(size, [](std::int64_t round) { return round < 2 || round > 8; });
    if (end.rank == Pair::writer_rank) {
      end.publish(0);
      end.await_consumed(1);
      for (std::int64_t round = 1; round <= 8; ++round)
        end.publish(round);  // none is sent meanwhile
      end.await_consumed(9);
      end.publish(9);
      end.await_consumed(10);
    } else {
      end.await_publications(1);
      end.expect_present(0);
      end.await_publications(2);
      CHECK(end.exchange.fetch(1).front().state == Arrival::State::missed);
      CHECK(end.pair.board->round(end.other, 2).load() == 8);
      end.exchange.complete(9);  // it has rejoined
      end.await_publications(3);
      end.expect_present(9);
    }
    end.close();
  }
}
