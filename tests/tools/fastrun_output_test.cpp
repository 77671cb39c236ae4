#include "fastrun/output.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fast/core/deadline.hpp>
#include <random>
#include <utility>

#include "support/catch.hpp"
#include "support/seed.hpp"

using fastrun::Descriptor;

namespace {

std::pair<Descriptor, Descriptor> pipe_pair() {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::pair<Descriptor, Descriptor> connection() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void put(const Descriptor& to, std::string_view text) {
  REQUIRE(write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

/// A rank's pipes, its sender, and the other end of the connection.
struct PrintingRank {
  std::pair<Descriptor, Descriptor> output = pipe_pair(), errors = pipe_pair(), link = connection();
  fastrun::OutputSender sender{std::move(link.first), std::move(output.first),
                               std::move(errors.first)};

  std::string received() {
    char buffer[1 << 16];
    const ssize_t count = recv(link.second.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(0, count))};
  }
};

std::string part(char stream, const std::string& text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string bytes(1 + sizeof length, stream);
  std::memcpy(bytes.data() + 1, &length, sizeof length);
  return bytes + text;
}

}  // namespace

TEST_CASE("what a rank prints is sent with the name of its stream") {
  PrintingRank rank;
  put(rank.output.second, "result\n");
  put(rank.errors.second, "error\n");
  rank.sender.advance();
  CHECK(rank.sender.is_flushed());
  CHECK(rank.received() == part('o', "result\n") + part('e', "error\n"));
}

TEST_CASE("the last six lines of the standard error are remembered") {
  PrintingRank rank;
  put(rank.output.second, "no error\n");
  for (int line = 1; line <= 8; ++line) put(rank.errors.second, std::to_string(line) + "\n");
  put(rank.errors.second, "unfinished");
  rank.sender.take_rest();
  CHECK(rank.sender.last_lines().get() == std::deque<std::string>{"3", "4", "5", "6", "7", "8"});
}

TEST_CASE("a rank waits while nobody reads, and goes on when the reader has gone") {
  PrintingRank rank;
  const std::string text(4096, 'x');
  const fast::Deadline deadline(fast::Seconds(20));
  while (rank.sender.watched()[0].fd >= 0 && !deadline.expired()) {  // until it is full
    put(rank.output.second, text);
    rank.sender.advance();
  }
  CHECK_FALSE(rank.sender.is_flushed());
  rank.link.second = Descriptor();
  rank.sender.advance();
  CHECK(rank.sender.is_flushed());
  put(rank.output.second, text);
  rank.sender.advance();
  CHECK(rank.sender.is_flushed());
  CHECK(rank.sender.watched()[0].fd >= 0);
}

namespace {

/// What a Prefixer makes of text that comes in pieces of random length, with little room each time.
std::string prefixed(std::string_view text, std::mt19937& random) {
  fastrun::Prefixer prefixer(12);
  std::string all;
  while (!text.empty()) {
    std::string_view piece = text.substr(0, 1 + random() % 7);
    text.remove_prefix(piece.size());
    while (!piece.empty()) {
      std::string some;
      piece.remove_prefix(prefixer.append(piece, some, 6 + random() % 5));
      all += some;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("each line gets the rank in front, however its bytes arrive") {
  const std::uint64_t seed = test_seed(1);
  INFO("seed " << seed);
  std::mt19937 random(static_cast<unsigned>(seed));
  for (int round = 0; round < 200; ++round) {
    CHECK(prefixed("a\nbcd\n\nend", random) == "[12] a\n[12] bcd\n[12] \n[12] end");
    CHECK(prefixed("\r 10 %\r 20 %\r 100 %\nwell\r\n\rx\n", random) ==
          "[12]  10 %\n[12]  20 %\n[12]  100 %\n[12] well\n[12] x\n");
  }
}

TEST_CASE("a line longer than what is written at once has one prefix") {
  fastrun::Prefixer prefixer(3);
  std::string first, second;
  const std::string line(100, 'x');
  const std::size_t taken = prefixer.append(line, first, 50);
  CHECK(first == "[3] " + std::string(46, 'x'));
  CHECK(prefixer.append(std::string_view(line).substr(taken), second, 4096) == 54);
  CHECK(second == std::string(54, 'x'));
}
