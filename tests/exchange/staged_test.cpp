// Reads of other hosts' devices, the hosts being threads: what of them is taken and what is not.
#include <atomic>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/exchange/group.hpp>
#include <fast/exchange/local.hpp>
#include <functional>
#include <thread>

#include "exchange/device/staged.hpp"
#include "exchange/pair.hpp"
#include "exchange/peers.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "support/catch.hpp"

using namespace fast;
using fast::testing::Pair;
using fast::testing::staleness;

namespace {

constexpr std::size_t element_count = 1000;
const PayloadShape staged_shape{element_count * sizeof(float), 1, 0};

thread_local bool has_begun = false;  ///< begin_thread() was called
std::atomic<int> copies_of_begun_threads = 0, copies_of_others = 0;

class PlainWork final : public DeviceWork {
 public:
  explicit PlainWork(bool is_beside = false) : is_beside_(is_beside) {}
  std::shared_ptr<std::byte> make_memory(std::size_t size_bytes) override {
    auto buffer = std::make_shared<AlignedBuffer>(size_bytes);
    return {buffer, buffer->data()};
  }
  std::shared_ptr<std::byte> make_host_memory(std::size_t size_bytes) override {
    return make_memory(size_bytes);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
    if (is_beside_) ++(has_begun ? copies_of_begun_threads : copies_of_others);
  }
  std::shared_ptr<void> pin(std::span<const std::byte>) override { return nullptr; }
  std::function<void(const Deadline&)> make_mark() override {
    return [](const Deadline&) {};
  }
  std::shared_ptr<DeviceWork> beside() override { return std::make_shared<PlainWork>(true); }
  void begin_thread() override { has_begun = true; }

 private:
  bool is_beside_;
};

/// What a read is to meet with, when its last part is asked for.
enum class Fate { whole, overtaken, broken, refused, given_up };

class Reads final : public RemoteReads {
 public:
  Reads(std::vector<std::byte*> parts, Fate fate) : parts_(std::move(parts)), fate_(fate) {}
  bool read(int worker, std::size_t offset, void* to, std::size_t size_bytes,
            const std::function<bool()>& goes_on) override {
    std::byte* from = parts_[static_cast<std::size_t>(worker)] + offset;
    const bool is_stamp = size_bytes == sizeof(std::uint64_t);
    if (!is_stamp) ++asked;
    if (fate_ == Fate::refused) fail(ErrorKind::mpi, "no way to worker {}", worker);
    if (fate_ == Fate::given_up) return false;
    if (fate_ == Fate::broken && is_stamp) return true;  // nothing has come
    if (fate_ == Fate::overtaken && is_stamp) {
      const std::uint64_t none = 0;
      std::memcpy(to, &none, sizeof none);
      return goes_on();
    }
    std::memcpy(to, from, size_bytes);
    return goes_on();
  }
  int asked = 0;

 private:
  std::vector<std::byte*> parts_;
  Fate fate_;
};

struct Outcome {
  std::vector<Arrival::State> states;
  std::vector<float> values;
  int asked = 0;
};

/// Two workers publish their rank + 1 in each of two rounds; what the first one finds of the other.
Outcome meet(Fate fate) {
  Outcome outcome;
  local::run(2, [&](const Group& group) {
    const auto memory = std::make_shared<Region>(
        group.allocate(staged_bytes({.shape = staged_shape}), Deadline(Seconds(30))));
    const auto own = static_cast<std::size_t>(group.rank());
    auto reads = std::make_shared<Reads>(memory->parts, fate);
    DeviceRegion region;
    region.rank = group.rank();
    region.parts.resize(2);
    region.parts[own] = {memory, memory->parts[own]};
    region.part_bytes = memory->part_bytes;
    region.owner = memory;
    region.reads = reads;
    region.everywhere = true;
    const int other = 1 - group.rank();
    ExchangeOptions options;
    options.payloads = 2;
    const EdgePlan plan = [=](std::int64_t) { return RoundEdges{{other}, {other}}; };
    Link link = group.open(host_shape(staged_shape, region), plan, options);
    link.peers->announce(WorkerStatus::running);
    link.exchange =
        staged_exchange(std::move(link.exchange), {.shape = staged_shape,
                                                   .work = std::make_shared<PlainWork>(),
                                                   .region = region,
                                                   .exact = true});
    for (std::int64_t round = 0; round < 2; ++round) {
      auto* values = reinterpret_cast<float*>(link.exchange->acquire().data);
      std::fill_n(values, element_count, static_cast<float>(group.rank() + 1));
      link.exchange->publish(round);
      const Arrival arrival = link.exchange->fetch(round).front();
      if (group.rank() == 0) {
        outcome.states.push_back(arrival.state);
        if (arrival.state == Arrival::State::present)
          outcome.values.push_back(
              reinterpret_cast<const float*>(arrival.payload.data)[element_count - 1]);
      }
      link.exchange->complete(round + 1);
    }
    link.exchange->flush();
    group.barrier(Deadline(Seconds(30)), "a test's end");
    if (group.rank() == 0) outcome.asked = reads->asked;
  });
  return outcome;
}

}  // namespace

TEST_CASE("what is read of another host's device counts when it is whole, and only then") {
  using enum Arrival::State;
  const Outcome whole = meet(Fate::whole);
  CHECK(whole.states == std::vector{present, present});
  CHECK(whole.values == std::vector<float>{2, 2});
  CHECK(meet(Fate::overtaken).states == std::vector{missed, missed});
  CHECK(meet(Fate::broken).states == std::vector{missed, missed});
  CHECK(meet(Fate::given_up).states == std::vector{suspect, suspect});
}

TEST_CASE("the thread that copies beside the program's work is announced to the device first") {
  meet(Fate::whole);
  CHECK(copies_of_begun_threads > 0);
  CHECK(copies_of_others == 0);
}

TEST_CASE("a worker that MPI cannot reach is left out, and not asked for again") {
  const Outcome refused = meet(Fate::refused);
  CHECK(refused.states == std::vector(2, Arrival::State::suspect));
  CHECK(refused.asked == 1);
}

TEST_CASE("where messages stay on devices the host's payload is a number and the weights") {
  DeviceRegion region;
  CHECK(host_shape(staged_shape, region).vector_bytes == staged_shape.vector_bytes);
  region.everywhere = true;
  const PayloadShape host = host_shape(staged_shape, region);
  CHECK(host.vector_bytes < 100);
  CHECK(host.scalars == staged_shape.scalars + 1);
  CHECK(host.weights_bytes == staged_shape.vector_bytes);
}

namespace {

/// A link whose neighbor goes on without this worker while its payload of round 0 is read.
class OvertakingExchange : public Exchange {
 public:
  explicit OvertakingExchange(std::vector<std::int64_t>& published,
                              std::vector<std::int64_t>& completed)
      : published_(published), completed_(completed) {}
  MutablePayload acquire() override { return {slot_.data(), nullptr, 0}; }
  void publish(std::int64_t round, bool) override { published_.push_back(round); }
  Payload published() const override { return {slot_.data(), nullptr, 0}; }
  std::uint64_t sequence() const override { return published_.size(); }
  std::vector<Arrival> fetch(std::int64_t round) override {
    Arrival arrival;
    arrival.worker = 1;
    arrival.payload = published();
    arrival.round = round;
    return {arrival};
  }
  bool is_intact(const Arrival& arrival) const override { return arrival.round != 0; }
  void complete(std::int64_t rounds) override { completed_.push_back(rounds); }

 private:
  std::vector<std::byte> slot_ = std::vector<std::byte>(staged_shape.vectors_bytes());
  std::vector<std::int64_t>&published_, &completed_;
};

}  // namespace

TEST_CASE("what was made of a payload that changed meanwhile is no neighbor's message") {
  using enum Arrival::State;
  std::vector<std::int64_t> published, completed, told;
  std::vector<Arrival::State> states;
  {
    const auto exchange =
        staged_exchange(std::make_unique<OvertakingExchange>(published, completed),
                        {.shape = staged_shape,
                         .work = std::make_shared<PlainWork>(),
                         .exact = true,
                         .completed = [&](std::int64_t rounds) { told.push_back(rounds); }});
    exchange->acquire();
    exchange->publish(0);
    for (std::int64_t round = 0; round < 3; ++round) {
      const Arrival arrival = exchange->fetch(round).front();
      states.push_back(arrival.state);
      CHECK(exchange->is_intact(arrival) == (round != 0));  // of round 0 it is known at once
      exchange->acquire();
      exchange->complete(round + 1);
      exchange->publish(round + 1);
    }
    exchange->flush();
  }
  CHECK(states == std::vector{present, torn, present});
  CHECK(published == std::vector<std::int64_t>{0, exchange::being_written, 2, 3});
  CHECK(completed == std::vector<std::int64_t>{1, 2, 3});  // a writer waits for it
  CHECK(told == completed);
}

namespace {

/// Its publications are in slots, where others look for weights.
class OvertakenInSlots final : public OvertakingExchange {
 public:
  OvertakenInSlots(const Pair& pair, std::vector<std::int64_t>& published,
                   std::vector<std::int64_t>& completed)
      : OvertakingExchange(published, completed),
        slots_(pair.end(Pair::writer_rank, staleness(0))) {}
  MutablePayload acquire() override { return slots_.acquire(); }
  void publish(std::int64_t round, bool with_weights) override {
    slots_.publish(round, with_weights);
  }

 private:
  exchange::SlotExchange slots_;
};

}  // namespace

TEST_CASE(
    "nobody adopts what was made of a payload that changed meanwhile, unless it is the last") {
  const bool is_last = GENERATE(false, true);
  std::vector<std::int64_t> published, completed;
  const Pair pair(staged_shape);
  const exchange::SlotPeers peers(pair.heartbeat(Pair::reader_rank), nullptr);
  std::vector<std::byte> room(staged_shape.vector_bytes);
  const auto overtaken = staged_exchange(
      std::make_unique<OvertakenInSlots>(pair, published, completed),
      {.shape = staged_shape, .work = std::make_shared<PlainWork>(), .exact = true});
  const auto publish = [&](std::int64_t round, int value) {
    std::memset(overtaken->acquire().data, value, staged_shape.vector_bytes);
    overtaken->publish(round);
    overtaken->flush();
  };
  publish(0, 1);
  CHECK(peers.snapshot(Pair::writer_rank, room) == Snapshot::message);
  overtaken->fetch(0);
  overtaken->complete(1);
  if (is_last) overtaken->keep_weights();
  publish(1, 2);
  CHECK(peers.snapshot(Pair::writer_rank, room) == (is_last ? Snapshot::message : Snapshot::none));
  CHECK(overtaken->fetch(1).front().state == Arrival::State::torn);
  publish(1, 3);
  CHECK(peers.snapshot(Pair::writer_rank, room) == Snapshot::message);
  CHECK(room.back() == std::byte{3});
}

TEST_CASE("what was fetched in a round that is given up does not count for the next one") {
  std::vector<std::int64_t> published, completed;
  const auto exchange = staged_exchange(
      std::make_unique<OvertakingExchange>(published, completed),
      {.shape = staged_shape, .work = std::make_shared<PlainWork>(), .exact = true});
  exchange->fetch(0);
  exchange->acquire();
  exchange->publish(5);
  exchange->complete(5);
  CHECK(exchange->fetch(5).front().state == Arrival::State::present);
}

TEST_CASE("a worker hears that it was overtaken, though a fetch was dropped in between") {
  std::vector<std::int64_t> published, completed;
  const auto exchange = staged_exchange(
      std::make_unique<OvertakingExchange>(published, completed),
      {.shape = staged_shape, .work = std::make_shared<PlainWork>(), .exact = true});
  exchange->fetch(0);
  exchange->complete(1);
  exchange->begin_fetch(1);
  exchange->acquire();
  exchange->publish(1);
  CHECK(exchange->fetch(1).front().state == Arrival::State::torn);
  exchange->acquire();
  exchange->publish(1);
  CHECK(exchange->fetch(1).front().state == Arrival::State::present);
  CHECK(published == std::vector<std::int64_t>{exchange::being_written, 1});
}

namespace {

/// Whose neighbor was overtaken in round 0, too, and has published nothing for round 1.
class WaitingExchange final : public OvertakingExchange {
 public:
  using OvertakingExchange::OvertakingExchange;
  std::vector<Arrival> fetch(std::int64_t round) override {
    const Deadline deadline(Seconds(20));
    while (round == 1) {
      require(!deadline.expired(), ErrorKind::deadline, "the wait was not ended");
      check_wait();
      std::this_thread::yield();
    }
    return OvertakingExchange::fetch(round);
  }
};

}  // namespace

TEST_CASE("a worker that was overtaken hears of it without a wait for its neighbors") {
  std::vector<std::int64_t> published, completed;
  const auto exchange = staged_exchange(
      std::make_unique<WaitingExchange>(published, completed),
      {.shape = staged_shape, .work = std::make_shared<PlainWork>(), .exact = true});
  exchange->fetch(0);
  exchange->complete(1);
  exchange->acquire();
  exchange->publish(1);
  CHECK(exchange->fetch(1).front().state == Arrival::State::torn);
  CHECK(published == std::vector<std::int64_t>{exchange::being_written});
  CHECK(exchange->fetch(2).front().state == Arrival::State::present);
}

namespace {

/// A kernel on it hangs from some time on. Its waits are counted, not waited.
class HangingWork final : public DeviceWork {
 public:
  explicit HangingWork(double& waited_s) : DeviceWork(Seconds(60)), waited_s_(waited_s) {}
  std::shared_ptr<std::byte> make_memory(std::size_t size_bytes) override {
    return PlainWork().make_memory(size_bytes);
  }
  std::shared_ptr<std::byte> make_host_memory(std::size_t size_bytes) override {
    return make_memory(size_bytes);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
  }
  std::shared_ptr<void> pin(std::span<const std::byte>) override { return nullptr; }
  std::function<void(const Deadline&)> make_mark() override {
    return [this](const Deadline& deadline) {
      if (!hangs) return;
      waited_s_ += deadline.limit_s();
      fail(ErrorKind::deadline, "a kernel hangs");
    };
  }
  std::shared_ptr<DeviceWork> beside() override { return std::make_shared<PlainWork>(); }
  std::atomic<bool> hangs = false;

 private:
  double& waited_s_;
};

}  // namespace

TEST_CASE("memory that is released while a kernel hangs is kept: to free it would wait") {
  double waited_s = 0;
  const auto work = std::make_shared<HangingWork>(waited_s);
  for (const bool hangs : {false, true}) {
    work->hangs = hangs;
    if (hangs) CHECK_THROWS_AS(work->settle(), Error);
    const auto other = std::make_shared<int>();
    work->hold(other, 8);
    work->allocate(100);
    work->allocate_on_host(50);
    CHECK(other.use_count() == (hangs ? 2 : 1));
    CHECK(work->held() == (hangs ? 108 : 0));
  }
}

TEST_CASE("a kernel that hangs costs one deadline, however many tasks wait for it") {
  double waited_s = 0;
  const auto work = std::make_shared<HangingWork>(waited_s);
  {
    std::vector<std::int64_t> published, completed;
    const auto exchange =
        staged_exchange(std::make_unique<OvertakingExchange>(published, completed),
                        {.shape = staged_shape, .work = work, .exact = true});
    exchange->acquire();
    exchange->publish(1);
    exchange->flush();
    work->hangs = true;
    for (std::int64_t round = 1; round < 5; ++round) {
      exchange->complete(round + 1);
      exchange->publish(round + 1);
    }
  }
  CHECK(waited_s > 60);
  CHECK(waited_s < 62);  // eight tasks and the memory's end
  CHECK_THROWS_WITH(work->settle(), "a kernel hangs");
  work->hangs = false;
  work->settle();
  work->hangs = true;
  CHECK_THROWS_WITH(work->settle(), "a kernel hangs");
  CHECK(waited_s > 120);  // it had worked again
}

namespace {

/// Worker 1 publishes whenever something was copied to the host.
class FastPeer final : public Peers {
 public:
  explicit FastPeer(std::uint64_t& sequence) : sequence_(sequence) {}
  PeerState peer(int) const override { return {.sequence = sequence_}; }
  bool is_suspect(int) const override { return false; }
  Seconds suspect_after(int) const override { return Seconds(1); }
  void note_progress() override {}
  bool announce(WorkerStatus) override { return false; }
  using Peers::snapshot;
  Snapshot snapshot(int, std::span<std::byte>, Piece& piece) const override {
    piece.sequence = sequence_;
    return Snapshot::message;
  }

 private:
  std::uint64_t& sequence_;
};

/// Its copies to `room` take as long as a round.
class SlowToHost final : public DeviceWork {
 public:
  SlowToHost(std::span<const std::byte> room, std::uint64_t& sequence, bool lacks_memory)
      : room_(room), sequence_(sequence), lacks_memory_(lacks_memory) {}
  std::shared_ptr<std::byte> make_memory(std::size_t size_bytes) override {
    require(!lacks_memory_, ErrorKind::resource, "the device is full");
    return PlainWork().make_memory(size_bytes);
  }
  std::shared_ptr<std::byte> make_host_memory(std::size_t size_bytes) override {
    return make_memory(size_bytes);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
    if (to == room_.data()) ++sequence_;
  }
  std::shared_ptr<void> pin(std::span<const std::byte>) override { return nullptr; }
  std::function<void(const Deadline&)> make_mark() override {
    return [](const Deadline&) {};
  }
  std::shared_ptr<DeviceWork> beside() override {
    return std::make_shared<SlowToHost>(room_, sequence_, lacks_memory_);
  }

 private:
  std::span<const std::byte> room_;
  std::uint64_t& sequence_;
  bool lacks_memory_;
};

}  // namespace

TEST_CASE("a model is read whole whose worker publishes faster than the host copies") {
  for (const bool lacks_memory : {false, true}) {
    std::vector<std::byte> room(staged_shape.vector_bytes);
    std::uint64_t sequence = 1;
    Staging staging{.shape = staged_shape,
                    .work = std::make_shared<SlowToHost>(room, sequence, lacks_memory),
                    .exact = true};
    const auto memory =
        std::make_shared<std::vector<std::byte>>(staged_bytes(staging), std::byte{7});
    staging.region.parts = {nullptr, {memory, memory->data()}};
    const auto peers = mapped_peers(std::make_shared<FastPeer>(sequence), staging);
    CHECK(peers->snapshot(1, room) == (lacks_memory ? Snapshot::none : Snapshot::weights));
    CHECK(room.back() == std::byte{7});
  }
}

namespace {

/// A link above staleness 0 whose payload changes while it is read, some times.
class ChangingExchange final : public Exchange {
 public:
  explicit ChangingExchange(int changes) : changes_(changes) {}
  MutablePayload acquire() override { return {slot_.data(), nullptr, 0}; }
  void publish(std::int64_t, bool) override {}
  Payload published() const override { return {slot_.data(), nullptr, 0}; }
  std::uint64_t sequence() const override { return 0; }
  std::vector<Arrival> fetch(std::int64_t round) override {
    Arrival changing, absent;
    ++value_;
    std::fill(slot_.begin(), slot_.end(), static_cast<std::byte>(value_));
    changing.worker = 1;
    changing.payload = published();
    changing.round = round;
    absent.worker = 2;
    absent.state = Arrival::State::suspect;
    return {changing, absent};
  }
  bool is_intact(const Arrival& arrival) const override {
    require(arrival.worker == 1, ErrorKind::internal, "the payload of an absent worker was read");
    return changes_-- <= 0;
  }
  void complete(std::int64_t) override {}
  const std::byte* slot() const { return slot_.data(); }

 private:
  mutable int changes_;
  int value_ = 0;
  std::vector<std::byte> slot_ = std::vector<std::byte>(staged_shape.vectors_bytes());
};

}  // namespace

TEST_CASE("above staleness 0 a payload that changes is copied again, three times at most") {
  using enum Arrival::State;
  for (const int changes : {0, 1, 2, 3, 7}) {
    auto host = std::make_unique<ChangingExchange>(changes);
    const std::byte* slot = host->slot();
    const auto exchange = staged_exchange(
        std::move(host), {.shape = staged_shape, .work = std::make_shared<PlainWork>()});
    const std::vector<Arrival> arrivals = exchange->fetch(4);
    INFO(changes << " changes");
    CHECK(arrivals[0].state == (changes < 3 ? present : torn));
    CHECK(arrivals[1].state == suspect);
    CHECK(arrivals[0].round == 4);
    CHECK(arrivals[0].payload.data != slot);
    CHECK(exchange->is_intact(arrivals[0]));
    if (changes < 3) CHECK(arrivals[0].payload.data[0] == static_cast<std::byte>(changes + 1));
  }
}

namespace {

/// A link of two neighbors. The second one is lost in round 2.
class LosingExchange final : public Exchange {
 public:
  MutablePayload acquire() override { return {slot_.data(), nullptr, 0}; }
  void publish(std::int64_t, bool) override {}
  Payload published() const override { return {slot_.data(), nullptr, 0}; }
  std::uint64_t sequence() const override { return 0; }
  std::vector<Arrival> fetch(std::int64_t round) override {
    std::vector<Arrival> arrivals(2);
    for (Arrival& arrival : arrivals) arrival.payload = published();
    arrivals[0].worker = 1;
    arrivals[1].worker = 2;
    if (round >= 2) arrivals[1].state = Arrival::State::suspect;
    return arrivals;
  }
  bool is_intact(const Arrival&) const override { return true; }
  void complete(std::int64_t) override {}

 private:
  std::vector<std::byte> slot_ = std::vector<std::byte>(staged_shape.vectors_bytes());
};

}  // namespace

TEST_CASE("memory for what is copied of a worker is given back when the worker is gone for good") {
  for (const bool exact : {true, false}) {
    std::atomic<bool> gone = false;
    const auto work = std::make_shared<PlainWork>();
    const Staging staging{.shape = staged_shape, .exact = exact};
    const std::size_t own = staged_bytes(staging), image = own / (exact ? 2 : 3);
    const auto exchange = staged_exchange(
        std::make_unique<LosingExchange>(),
        {.shape = staged_shape, .work = work, .exact = exact, .is_gone = [&](int w) {
           return gone && w == 2;
         }});
    std::vector<std::size_t> held;
    for (std::int64_t round = 0; round < 5; ++round) {
      gone = round == 1 || round == 4;  // in round 1 its last message is read
      exchange->fetch(round);
      exchange->complete(round + 1);
      held.push_back((work->held() - own) / image);
    }
    CHECK(held == std::vector<std::size_t>{2, 2, 2, 2, 1});
  }
}

TEST_CASE("the mapping of a worker that is gone for good ends, and it is left out from then on") {
  for (const bool exact : {true, false}) {
    std::atomic<bool> gone = false;
    std::uint64_t sequence = 1;
    Staging staging{.shape = staged_shape,
                    .work = std::make_shared<PlainWork>(),
                    .exact = exact,
                    .is_gone = [&](int worker) { return gone && worker == 2; }};
    std::vector<std::weak_ptr<std::byte>> parts;
    for (int worker = 0; worker < 3; ++worker) {
      const auto memory = std::make_shared<std::vector<std::byte>>(staged_bytes(staging));
      staging.region.parts.emplace_back(memory, memory->data());
      parts.emplace_back(staging.region.parts.back());
    }
    staging.region.part_bytes = staged_bytes(staging);
    staging.region.everywhere = staging.region.mapped = true;
    const auto peers = mapped_peers(std::make_shared<FastPeer>(sequence), staging);
    const auto exchange = staged_exchange(std::make_unique<LosingExchange>(), std::move(staging));
    std::vector<std::byte> room(staged_shape.vector_bytes);
    const auto fetch = [&](std::int64_t round) {
      const Arrival::State found = exchange->fetch(round)[1].state;
      exchange->complete(round + 1);
      return found;
    };
    for (std::int64_t round = 0; round < 8; ++round) {
      gone = round == 1 || round >= 5;  // in round 1 its last message is read
      fetch(round);
      if (round < 5) CHECK(peers->snapshot(2, room) == Snapshot::weights);
      if (round < 5) CHECK(!parts[2].expired());
    }
    CHECK(parts[2].expired());
    CHECK(!parts[0].expired());
    CHECK(!parts[1].expired());
    CHECK(peers->snapshot(1, room) == Snapshot::weights);
    CHECK(peers->snapshot(2, room) == Snapshot::none);
    CHECK(fetch(0) == Arrival::State::suspect);  // as if it were there again
  }
}
