#include "train/record/run_events.hpp"

#include <vector>

#include "support/catch.hpp"

using namespace fast;
using train::CountedRounds;

namespace {

struct Rounds final : Observer {
  void on_phase(const PhaseEvent& event) noexcept override { phases.push_back(event.round); }
  void on_message(const MessageEvent& event) noexcept override { messages.push_back(event.round); }
  void on_peer(const PeerEvent& event) noexcept override { peers.push_back(event.round); }
  void on_scalar(const ScalarEvent& event) noexcept override { scalars.push_back(event.round); }
  std::vector<std::int64_t> phases, messages, peers, scalars;
};

void make_round(CountedRounds& events, std::int64_t round) {
  PhaseEvent phase;
  MessageEvent message;
  PeerEvent peer;
  ScalarEvent scalar;
  phase.round = message.round = peer.round = scalar.round = round;
  events.on_phase(phase);
  events.on_message(message);
  events.on_peer(peer);
  events.on_scalar(scalar);
}

}  // namespace

TEST_CASE("an observer that is added later is told the rounds from then on, as the run counts") {
  const auto first = std::make_shared<Rounds>(), added = std::make_shared<Rounds>();
  CountedRounds events(first);
  make_round(events, 0);
  events.set_before(100);
  events.add(added);
  make_round(events, 1);
  make_round(events, 2);
  for (const auto* told : {&first->phases, &first->messages, &first->peers, &first->scalars})
    CHECK(*told == std::vector<std::int64_t>{0, 101, 102});
  for (const auto* told : {&added->phases, &added->messages, &added->peers, &added->scalars})
    CHECK(*told == std::vector<std::int64_t>{101, 102});
}

TEST_CASE("events of a worker that nobody observes yet are lost") {
  CountedRounds events(nullptr);
  make_round(events, 0);
  const auto added = std::make_shared<Rounds>();
  events.add(added);
  make_round(events, 1);
  CHECK(added->phases == std::vector<std::int64_t>{1});
}
