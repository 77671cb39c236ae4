#include "mpi/request.hpp"

#include <array>
#include <cstring>
#include <fast/core/error.hpp>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

constexpr int request_tag = 5;
using Bytes = std::array<char, 8>;

/// Rank 0 sends, rank 1 receives; other ranks take part in barriers alone.
struct SenderAndReceiver {
  mpi::Messages messages{testing::world(), Deadline(Seconds(20))};
  int rank = testing::world().rank();

  static void barrier() { testing::world().barrier(Deadline(Seconds(20)), "a test"); }
  void send(const Bytes& bytes) const {
    if (rank != 0) return;
    CHECK(messages.send(1, request_tag, bytes.data(), bytes.size()).wait(Deadline(Seconds(20))));
  }
  template <class Room>
  mpi::Request receive(Room& room) const {
    return messages.receive(0, request_tag, room.data(), room.size());
  }
};

}  // namespace

TEST_CASE("a request without an operation is done") {
  mpi::Request none;
  CHECK_FALSE(none.is_under_way());
  CHECK(none.test());
  CHECK(none.wait(Deadline(Seconds(0))));
}

TEST_CASE("a receive is under way until its message is here, wherever the request is moved") {
  const SenderAndReceiver pair;
  Bytes room{};
  mpi::Request request, moved;
  if (pair.rank == 1) request = pair.receive(room);
  if (pair.rank == 1) CHECK_FALSE(request.wait(Deadline(Seconds(0.01))));
  pair.barrier();
  pair.send({"message"});
  if (pair.rank == 1) {
    CHECK(request.is_under_way());
    moved = std::move(request);
    CHECK(moved.wait(Deadline(Seconds(20))));
    CHECK_FALSE(moved.is_under_way());
    CHECK(std::strcmp(room.data(), "message") == 0);
  }
}

TEST_CASE(
    "a receive that is destroyed is canceled: its buffer stays, a later receive gets the message") {
  const SenderAndReceiver pair;
  Bytes given_up{"before"}, room{};
  if (pair.rank == 1) {
    const mpi::Request request = pair.receive(given_up);
    CHECK(request.is_under_way());
  }
  pair.barrier();
  pair.send({"message"});
  if (pair.rank == 1) {
    CHECK(pair.receive(room).wait(Deadline(Seconds(20))));
    CHECK(std::strcmp(room.data(), "message") == 0);
    CHECK(std::strcmp(given_up.data(), "before") == 0);
  }
}

TEST_CASE("an assignment cancels the receive that it replaces") {
  const SenderAndReceiver pair;
  Bytes given_up{"before"}, room{};
  mpi::Request request;
  if (pair.rank == 1) {
    request = pair.receive(given_up);
    request = pair.receive(room);
  }
  pair.barrier();
  pair.send({"message"});
  if (pair.rank == 1) {
    CHECK(request.wait(Deadline(Seconds(20))));
    CHECK(std::strcmp(room.data(), "message") == 0);
    CHECK(std::strcmp(given_up.data(), "before") == 0);
  }
}

TEST_CASE("an error names the call and the other rank, in each later test too") {
  // MPICH reports an error of MPI_Test to the handler of MPI_COMM_WORLD.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const SenderAndReceiver pair;
  std::array<char, 3> too_short{};
  mpi::Request request;
  if (pair.rank == 1) request = pair.receive(too_short);
  pair.barrier();
  pair.send({"message"});
  if (pair.rank == 1) {
    CHECK_THROWS_WITH(request.wait(Deadline(Seconds(20))), Contains("MPI_Irecv with rank 0: "));
    CHECK_THROWS_AS(request.test(), Error);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
