#include "exchange/gossip.hpp"

#include <algorithm>
#include <deque>

#include "exchange/group_impl.hpp"
#include "support/catch.hpp"

using namespace fast;
using exchange::Gossip;

namespace {

using Mail = std::vector<std::deque<std::vector<std::byte>>>;  // by worker

class Letters final : public Notes {
 public:
  Letters(Mail& mail, int rank) : mail_(mail), rank_(static_cast<std::size_t>(rank)) {}
  bool send(int worker, std::span<const std::byte> note) override {
    mail_[static_cast<std::size_t>(worker)].emplace_back(note.begin(), note.end());
    return true;
  }
  bool receive(std::span<std::byte> note) override {
    if (mail_[rank_].empty()) return false;
    std::copy(mail_[rank_].front().begin(), mail_[rank_].front().end(), note.begin());
    mail_[rank_].pop_front();
    return true;
  }

 private:
  Mail& mail_;
  std::size_t rank_;
};

/// Five workers; those from `first_of_second` on are on a second host.
class FiveWorkers final : public GroupImpl {
 public:
  FiveWorkers(Mail& mail, int rank, int first_of_second)
      : mail_(mail), rank_(rank), first_of_second_(first_of_second) {}
  int rank() const override { return rank_; }
  int size() const override { return 5; }
  std::string name() const override { return "five"; }
  std::vector<int> hosts() const override {
    std::vector<int> hosts(5);
    for (int worker = first_of_second_; worker < 5; ++worker)
      hosts[static_cast<std::size_t>(worker)] = first_of_second_;
    return hosts;
  }
  std::vector<std::string> all_gather(std::string_view, const Deadline&,
                                      std::string_view) override {
    return {};
  }
  Region allocate(std::size_t, const Deadline&) override { return {}; }
  std::unique_ptr<Notes> open_notes(std::size_t, const Deadline&) override {
    if (first_of_second_ == 5) return nullptr;
    return std::make_unique<Letters>(mail_, rank_);
  }

 private:
  Mail& mail_;
  int rank_, first_of_second_;
};

Gossip news_of(Mail& mail, int rank, int first_of_second) {
  return {GroupImpl::group(std::make_shared<FiveWorkers>(mail, rank, first_of_second)), 8,
          Deadline(Seconds(30))};
}

}  // namespace

TEST_CASE("news go to workers of the other host, to each of them sooner or later") {
  Mail mail(5);
  Gossip sender = news_of(mail, 1, 2);
  CHECK(sender.has_other_hosts());
  CHECK(sender.here() == std::vector<bool>{true, true, false, false, false});
  std::fill(sender.words().begin(), sender.words().end(), 17);
  for (int k = 0; k < 100; ++k) sender.send();
  CHECK(mail[0].empty());
  CHECK(mail[1].empty());
  for (int worker = 2; worker < 5; ++worker) {
    Gossip receiver = news_of(mail, worker, 2);
    REQUIRE(receiver.receive());
    CHECK(std::all_of(receiver.words().begin(), receiver.words().end(),
                      [](std::uint64_t word) { return word == 17; }));
    while (receiver.receive()) {
    }
    CHECK(mail[static_cast<std::size_t>(worker)].empty());
  }
}

TEST_CASE("on one host there are no news") {
  Mail mail(5);
  Gossip alone = news_of(mail, 0, 5);
  CHECK_FALSE(alone.has_other_hosts());
  alone.send();
  CHECK_FALSE(alone.receive());
}
