#include "membership/gossip.hpp"

#include <algorithm>
#include <deque>

#include "membership/hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;

namespace {

using Mail = std::vector<std::deque<std::vector<std::byte>>>;  // by rank

class Letters final : public Datagrams {
 public:
  Letters(Mail& mail, int rank) : mail_(mail), rank_(static_cast<std::size_t>(rank)) {}
  bool send(int rank, std::span<const std::byte> datagram) override {
    mail_[static_cast<std::size_t>(rank)].emplace_back(datagram.begin(), datagram.end());
    return true;
  }
  bool receive(std::span<std::byte> datagram) override {
    if (mail_[rank_].empty()) return false;
    std::copy(mail_[rank_].front().begin(), mail_[rank_].front().end(), datagram.begin());
    mail_[rank_].pop_front();
    return true;
  }

 private:
  Mail& mail_;
  std::size_t rank_;
};

/// One of five ranks; those from `first_of_second` on are on a second host.
struct Rank {
  Rank(Mail& mail, int rank, int first_of_second)
      : board(memory.board(rank)),
        gossip(board, hosts(first_of_second),
               first_of_second == 5 ? nullptr : std::make_unique<Letters>(mail, rank)) {}
  static std::vector<int> hosts(int first_of_second) {
    std::vector<int> hosts(5);
    std::fill(hosts.begin() + first_of_second, hosts.end(), first_of_second);
    return hosts;
  }
  testing::Records memory{5};
  RecordBoard board;
  Gossip gossip;
};

}  // namespace

TEST_CASE("news go to ranks of the other host, to each of them sooner or later") {
  Mail mail(5);
  Rank sender(mail, 1, 2);
  CHECK(sender.gossip.has_other_hosts());
  sender.board.raise(word::progress, 17);
  sender.memory.board(3).raise(word::progress, 99);  // of that rank, as it was once
  sender.gossip.note(sender.board);
  for (int k = 0; k < 100; ++k) sender.gossip.send();
  CHECK(mail[0].empty());
  CHECK(mail[1].empty());
  for (int rank = 2; rank < 5; ++rank) {
    Rank receiver(mail, rank, 2);
    REQUIRE(receiver.gossip.receive());
    receiver.gossip.take_over(receiver.board);
    CHECK(receiver.board.read(1, word::progress) == 17);
    CHECK(receiver.board.read(0, word::progress) == 0);
    CHECK(receiver.board.read(3, word::progress) == 0);  // each rank of that host knows better
    while (receiver.gossip.receive()) {
    }
    CHECK(mail[static_cast<std::size_t>(rank)].empty());
  }
}

TEST_CASE("on one host there are no news") {
  Mail mail(5);
  Rank alone(mail, 0, 5);
  CHECK_FALSE(alone.gossip.has_other_hosts());
  alone.gossip.send();
  CHECK_FALSE(alone.gossip.receive());
}
