#include <fast/mpi/communicator.hpp>

#include <fast/core/error.hpp>
#include <numeric>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;

namespace {

constexpr Seconds plenty{20};

mpi::PointToPoint open_messages() { return {testing::world(), Deadline(plenty)}; }

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

}  // namespace

TEST_CASE("messages go round all ranks, in order, without waiting for the receiver") {
  mpi::PointToPoint messages = open_messages();
  const int next = (messages.rank() + 1) % messages.size();
  const int before = (messages.rank() + messages.size() - 1) % messages.size();
  const std::size_t sizes[] = {1, 1000, 300000};  // the last is longer than MPI's own buffers
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t size : sizes) {
      std::vector<int> sent = numbers(size, 100 * messages.rank() + round);
      messages.send(next, std::as_bytes(std::span(sent)));
      std::fill(sent.begin(), sent.end(), -1);  // the bytes were copied
    }
  }
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t size : sizes) {
      std::vector<int> found(size);
      messages.receive(before, std::as_writable_bytes(std::span(found)), Deadline(plenty));
      CHECK(found == numbers(size, 100 * before + round));
    }
  }
}

TEST_CASE("messages of two objects do not mix") {
  mpi::PointToPoint one = open_messages(), other = open_messages();
  const int next = (one.rank() + 1) % one.size();
  const int before = (one.rank() + one.size() - 1) % one.size();
  const int first = 1, second = 2;
  one.send(next, std::as_bytes(std::span(&first, 1)));
  other.send(next, std::as_bytes(std::span(&second, 1)));
  int found = 0;
  other.receive(before, std::as_writable_bytes(std::span(&found, 1)), Deadline(plenty));
  CHECK(found == 2);
  one.receive(before, std::as_writable_bytes(std::span(&found, 1)), Deadline(plenty));
  CHECK(found == 1);
}

TEST_CASE("a message that does not come ends the wait by its deadline") {
  mpi::PointToPoint messages = open_messages();
  int found = 0;
  try {
    messages.receive(0, std::as_writable_bytes(std::span(&found, 1)), Deadline(Seconds(0.05)));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::deadline);
    CHECK_THAT(error.what(), ContainsSubstring("rank 0 sent no message"));
  }
  CHECK_THROWS_WITH(messages.send(messages.size(), {}), ContainsSubstring("are required"));
  testing::world().barrier(Deadline(plenty), "the end of a test");
}
