#include "exchange/remote/messages/send_plan.hpp"

#include "exchange/pair.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

/// Worker 0 publishes, worker 1 of another host reads it in even rounds.
struct Sending {
  explicit Sending(std::int64_t bound) : staleness_(bound) {}

  Pair pair{64};
  std::int64_t staleness_;
  SlotExchange writer = pair.end(Pair::writer_rank, testing::staleness(unbounded_staleness));
  RemoteEdges edges{pair.board,
                    Pair::writer_rank,
                    [](std::int64_t round) {
                      return round % 2 == 0 ? RoundEdges{{}, {Pair::reader_rank}} : RoundEdges{};
                    },
                    staleness_,
                    Throttle(),
                    SendBuffers(pair.board, Pair::writer_rank)};
  SendPlan plan{edges, Pair::reader_rank};

  void publish(std::int64_t round) { testing::write(writer, round, 64); }
  WorkerHeader& reader() const { return pair.board->header(Pair::reader_rank); }
};

}  // namespace

TEST_CASE("at staleness 0 the oldest publication that the reader still needs is sent") {
  Sending sending(0);
  CHECK_FALSE(sending.plan.next());
  for (std::int64_t round = 0; round < 3; ++round) sending.publish(round);
  auto publication = sending.plan.next();
  REQUIRE(publication);
  CHECK(publication->sequence == 1);
  sending.plan.sent(*publication);
  publication = sending.plan.next();
  REQUIRE(publication);
  CHECK(publication->sequence == 3);  // the reader does not read round 1
  CHECK(publication->first == 2);
  sending.plan.sent(*publication);
  CHECK_FALSE(sending.plan.next());
}

TEST_CASE("at staleness 0 a reader that waits for a skipped round gets the newest publication") {
  Sending sending(0);
  for (std::int64_t round = 0; round < 8; ++round) sending.publish(round);
  // Of rounds 5 to 7 the reader reads 6 alone; it waits for 0.
  auto publication = sending.plan.next();
  REQUIRE(publication);
  CHECK(publication->first == 6);
  sending.plan.sent(*publication);
  CHECK_FALSE(sending.plan.next());
  sending.publish(9);
  sending.publish(11);
  sending.publish(13);
  sending.reader().reading.consumed = 8;
  publication = sending.plan.next();
  REQUIRE(publication);
  CHECK(publication->first == 13);
}

TEST_CASE("above staleness 0 the newest publication is sent when the reader reads next") {
  Sending sending(5);
  sending.publish(0);
  sending.publish(1);
  auto publication = sending.plan.next();
  REQUIRE(publication);
  CHECK(publication->sequence == 2);
  sending.plan.sent(*publication);
  CHECK_FALSE(sending.plan.next());
}

TEST_CASE("further rounds of the publication sent last are an extension") {
  Sending sending(0);
  sending.publish(0);
  sending.plan.sent(*sending.plan.next());
  CHECK_FALSE(sending.plan.extension());
  sending.writer.publish(1);
  CHECK_FALSE(sending.plan.extension());  // the reader does not read round 1
  sending.writer.publish(2);
  CHECK(sending.plan.extension() == 2);
  sending.plan.extended(2);
  CHECK_FALSE(sending.plan.extension());
}

TEST_CASE("a reader that has finished is sent nothing") {
  Sending sending(0);
  sending.publish(0);
  sending.reader().life.status = static_cast<std::uint32_t>(WorkerStatus::finished);
  CHECK_FALSE(sending.plan.next());
  CHECK_FALSE(sending.plan.extension());
}
