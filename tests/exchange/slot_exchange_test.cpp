#include "exchange/shared/slot_exchange.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fast/core/memory.hpp>
#include <set>
#include <thread>
#include <vector>

#include "exchange/pair.hpp"
#include "exchange/shared/seqlock.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using Catch::Matchers::Contains;
using testing::Pair;
using testing::staleness;
using testing::whole;
using testing::write;

TEST_CASE("no torn read under a continuous writer") {
  constexpr std::size_t bytes = guarded_reads ? 1 << 16 : 16 << 20;
  constexpr int reads = guarded_reads ? 200 : 1000;
  const Pair pair(bytes);
  std::atomic<bool> stop{false};
  std::thread writing([&] {
    SlotExchange writer = pair.end(Pair::writer_rank, staleness(unbounded_staleness));
    for (std::int64_t round = 0; !stop.load(); ++round) write(writer, round, bytes);
  });
  SlotExchange reader = pair.end(Pair::reader_rank, staleness(unbounded_staleness));
  AlignedBuffer copy(bytes);
  int standing = 0, torn = 0, rejected = 0;
  for (int round = 0; standing < reads; ++round) {
    const Arrival arrival = reader.fetch(round).front();
    const std::byte* data = read_optimistically(arrival.payload.data, copy.data(), bytes);
    if (data != copy.data()) std::memcpy(copy.data(), data, bytes);
    if (!reader.is_intact(arrival)) {
      ++rejected;
      continue;
    }
    ++standing;
    if (!whole(copy.data(), bytes)) ++torn;
  }
  stop = true;
  writing.join();
  INFO(rejected << " reads were rejected");
  CHECK(torn == 0);
}

TEST_CASE("a slot overwritten while it is read is rejected") {
  constexpr std::size_t bytes = 4096;
  const Pair pair(bytes);
  SlotExchange writer = pair.end(Pair::writer_rank, staleness(unbounded_staleness));
  SlotExchange reader = pair.end(Pair::reader_rank, staleness(unbounded_staleness));
  write(writer, 1, bytes);
  const Arrival arrival = reader.fetch(1).front();
  write(writer, 2, bytes);
  std::memset(writer.acquire().data, 3, bytes / 2);  // a writer that pauses in mid-slot
  CHECK(reader.is_intact(arrival));                  // in another slot
  CHECK(whole(arrival.payload.data, bytes));
  writer.publish(3);
  CHECK_FALSE(reader.is_intact(arrival));            // the next write may come any moment
  std::memset(writer.acquire().data, 4, bytes / 2);  // pauses in the very slot being read
  CHECK_FALSE(whole(arrival.payload.data, bytes));
  CHECK_FALSE(reader.is_intact(arrival));
  CHECK(reader.fetch(2).front().round == 3);
}

TEST_CASE("a writer that skips acknowledgements is caught at staleness 0") {
  constexpr std::size_t bytes = 4096;
  const Pair pair(bytes);
  SlotExchange writer =
      pair.end(Pair::writer_rank, staleness(unbounded_staleness));  // does not wait for readers
  SlotExchange reader = pair.end(Pair::reader_rank, staleness(0));
  for (int round = 0; round < 3; ++round) write(writer, round, bytes);
  const Arrival arrival = reader.fetch(0).front();
  CHECK(arrival.round == 0);
  CHECK(reader.is_intact(arrival));
  std::memset(writer.acquire().data, 9, bytes / 2);
  CHECK_FALSE(whole(arrival.payload.data, bytes));
  CHECK_FALSE(reader.is_intact(arrival));
}

TEST_CASE("a slot that holds weights alone instead of the round that was read is rejected") {
  constexpr std::size_t bytes = 4096;
  constexpr std::int64_t weights_alone = -1;  // in place of a round
  const Pair pair(bytes);
  SlotExchange writer = pair.end(Pair::writer_rank, staleness(unbounded_staleness));
  SlotExchange reader = pair.end(Pair::reader_rank, staleness(0));
  for (int round = 0; round < 3; ++round) write(writer, round, bytes);
  const Arrival arrival = reader.fetch(0).front();
  CHECK(reader.is_intact(arrival));
  write(writer, weights_alone, bytes);  // while the reader reads
  CHECK_FALSE(reader.is_intact(arrival));
}

TEST_CASE("a slot that is written again for an equal round is rejected") {
  constexpr std::size_t bytes = 4096;
  const Pair pair(bytes);
  SlotExchange writer = pair.end(Pair::writer_rank, staleness(unbounded_staleness));
  SlotExchange reader = pair.end(Pair::reader_rank, staleness(0));
  write(writer, 0, bytes);
  const Arrival arrival = reader.fetch(0).front();
  writer.publish(5);  // the same payload, for more rounds
  CHECK(reader.is_intact(arrival));
  for (int time = 0; time < 3; ++time) write(writer, 0, bytes);
  CHECK_FALSE(reader.is_intact(arrival));
}

TEST_CASE("at staleness 0 a writer waits for its reader and the reader gets exactly its round") {
  constexpr std::size_t bytes = 1 << 12;
  const Pair pair(bytes);
  const SlotPeers writer_peers(pair.heartbeat(Pair::writer_rank));
  const SlotPeers reader_peers(pair.heartbeat(Pair::reader_rank));
  std::thread writing([&] {
    SlotExchange writer = pair.end(Pair::writer_rank, staleness(0));
    for (std::int64_t round = 0; round < 200; ++round) write(writer, round, bytes);
  });
  SlotExchange reader = pair.end(Pair::reader_rank, staleness(0));
  int wrong = 0;
  for (std::int64_t round = 0; round < 200; ++round) {
    const Arrival arrival = reader.fetch(round).front();
    if (arrival.round != round || !whole(arrival.payload.data, bytes) ||
        arrival.payload.data[0] != static_cast<std::byte>(round & 0xff) ||
        !reader.is_intact(arrival)) {
      ++wrong;
    }
    reader.complete(round + 1);
  }
  writing.join();
  CHECK(wrong == 0);
}

namespace {

/// Two payloads of a writer, which are apart from the slots.
ExchangeOptions two_payloads() {
  ExchangeOptions options = staleness(0);
  options.payloads = 2;
  return options;
}

}  // namespace

TEST_CASE("at staleness 0 a writer with two payloads keeps each until its reader has it") {
  constexpr std::size_t bytes = 1 << 12;
  const Pair pair(64);
  const SlotPeers writer_peers(pair.heartbeat(Pair::writer_rank));
  const SlotPeers reader_peers(pair.heartbeat(Pair::reader_rank));
  std::array<std::vector<std::byte>, 2> payloads;
  for (auto& payload : payloads) payload.resize(bytes);
  std::thread writing([&] {
    SlotExchange writer = pair.end(Pair::writer_rank, two_payloads());
    for (std::int64_t round = 0; round < 200; ++round) {
      writer.acquire();
      std::ranges::fill(payloads[(writer.sequence() + 1) % 2], static_cast<std::byte>(round));
      writer.publish(round);
    }
  });
  SlotExchange reader = pair.end(Pair::reader_rank, two_payloads());
  int wrong = 0;
  for (std::int64_t round = 0; round < 200; ++round) {
    const Arrival arrival = reader.fetch(round).front();
    const auto& payload = payloads[arrival.sequence % 2];
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (std::ranges::count(payload, static_cast<std::byte>(round)) != bytes) ++wrong;
    if (!reader.is_intact(arrival)) ++wrong;
    reader.complete(round + 1);
  }
  writing.join();
  CHECK(wrong == 0);
}

TEST_CASE("a writer with two payloads that gives its reader up is caught") {
  const Pair pair(64);
  ExchangeOptions impatient = two_payloads();
  impatient.suspect_after = Seconds(0.2);
  const SlotPeers writer_peers(pair.heartbeat(Pair::writer_rank));
  SlotExchange writer = pair.end(Pair::writer_rank, impatient);
  SlotExchange reader = pair.end(Pair::reader_rank, two_payloads());
  for (int round = 0; round < 2; ++round) write(writer, round, 64);
  const Arrival arrival = reader.fetch(0).front();
  CHECK(reader.is_intact(arrival));
  writer.acquire();  // the third payload takes the place of the first
  CHECK_FALSE(reader.is_intact(arrival));
}

TEST_CASE("a deadline names worker, peer, operation, round and time") {
  const Pair pair(64);
  const SlotPeers alive(pair.heartbeat(Pair::writer_rank)),
      waiting(pair.heartbeat(Pair::reader_rank));
  ExchangeOptions options = staleness(0);
  options.deadline = Seconds(0.3);
  SlotExchange reader = pair.end(Pair::reader_rank, options);
  CHECK_THROWS_WITH(reader.fetch(7), Contains("waiting for a neighbor") &&
                                         Contains("worker 1 waited ") &&
                                         Contains(" s for worker 0") && Contains("round 7"));
}

TEST_CASE("a neighbor without heartbeat is left out and taken back") {
  using Events = std::vector<std::pair<PeerEvent::Kind, std::int64_t>>;
  struct Told : Observer {
    void on_peer(const PeerEvent& event) noexcept override {
      events.emplace_back(event.kind, event.round);
    }
    Events events;
  };
  const auto told = std::make_shared<Told>();
  const Pair pair(64);
  ExchangeOptions options = staleness(0);
  options.suspect_after = Seconds(3);
  options.observer = told;
  std::vector<std::string> said;
  options.log = [&](LogLevel, std::string_view text) { said.emplace_back(text); };
  const SlotPeers waiting(pair.heartbeat(Pair::reader_rank));
  SlotExchange reader = pair.end(Pair::reader_rank, options);
  CHECK(reader.fetch(0).front().state == Arrival::State::suspect);
  const auto& beats = pair.board->header(Pair::reader_rank).life.heartbeat;
  const std::uint64_t before = beats.load();
  CHECK(reader.fetch(1).front().state == Arrival::State::suspect);
  CHECK(beats.load() - before < 15);  // known suspects cost nothing
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Contains("worker 0 has shown no sign of life"));
  const SlotPeers back(pair.heartbeat(Pair::writer_rank));
  SlotExchange writer = pair.end(Pair::writer_rank, staleness(unbounded_staleness));
  write(writer, 2, 64);
  CHECK(reader.fetch(2).front().state == Arrival::State::present);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    write(writer, 3, 64);
  });
  CHECK(reader.fetch(3).front().state == Arrival::State::present);
  late.join();
  using enum PeerEvent::Kind;
  CHECK(told->events == Events{{suspected, 0}, {returned, 3}});  // seen when it is waited for
}

TEST_CASE("messages and events name a neighbor by the number that the owner gives it") {
  struct Told : Observer {
    void on_phase(const PhaseEvent& event) noexcept override { waited_for = event.peer; }
    void on_peer(const PeerEvent& event) noexcept override { suspects = event.peer; }
    std::atomic<int> waited_for{0}, suspects{0};
  };
  const Pair pair(64);
  const auto told = std::make_shared<Told>();
  ExchangeOptions options = staleness(0);
  options.suspect_after = Seconds(0.15);
  options.number_of = [](int rank) { return rank + 40; };
  options.observer = told;
  std::string said;
  options.log = [&](LogLevel, std::string_view text) { said = text; };
  const SlotPeers waiting(pair.heartbeat(Pair::reader_rank));
  SlotExchange reader = pair.end(Pair::reader_rank, options);
  reader.fetch(0);
  CHECK_THAT(said, Contains("worker 41: worker 40 has shown no sign of life"));
  CHECK(told->waited_for == 40);
  CHECK(told->suspects == 40);
}

TEST_CASE("finished neighbors drop out, failed ones wake their waiters") {
  const Pair pair(64);
  SlotPeers peers(pair.heartbeat(Pair::writer_rank));
  SlotExchange reader = pair.end(Pair::reader_rank, staleness(0));
  peers.announce(WorkerStatus::finished);
  CHECK(reader.fetch(0).front().state == Arrival::State::finished);
  bool first = false;
  peers.announce(WorkerStatus::running);
  std::thread failing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    first = peers.announce(WorkerStatus::failed);
  });
  CHECK_THROWS_WITH(reader.fetch(1), Contains("because worker 0 failed"));
  failing.join();
  CHECK(first);
  SlotPeers second(pair.heartbeat(Pair::reader_rank));
  CHECK_FALSE(second.announce(WorkerStatus::failed));  // only the first reports
  second.announce(WorkerStatus::finished);
  CHECK_FALSE(second.announce(WorkerStatus::failed));
  CHECK(peers.peer(Pair::reader_rank).status == WorkerStatus::finished);  // it has ended already
}

TEST_CASE("of workers that fail, the one that knew of no other failure is the cause") {
  const auto is_cause = [](const Pair& pair, int rank) {
    return pair.board->header(rank).claim.is_cause.load() != 0;
  };
  {
    const Pair pair(64);
    SlotPeers first(pair.heartbeat(0)), second(pair.heartbeat(1));
    CHECK(first.announce(WorkerStatus::failed));
    CHECK(is_cause(pair, 0));
    CHECK_FALSE(second.announce(WorkerStatus::failed));
    CHECK_FALSE(is_cause(pair, 1));
  }
  {
    const Pair pair(64);
    SlotPeers here(pair.heartbeat(0));
    pair.board->header(1).life.status.store(static_cast<std::uint32_t>(WorkerStatus::failed));
    here.announce(WorkerStatus::failed);  // what another host has told came first
    CHECK_FALSE(is_cause(pair, 0));
  }
  {
    const Pair pair(64);
    SlotPeers here(pair.heartbeat(0));
    here.announce(WorkerStatus::finished);
    CHECK_FALSE(is_cause(pair, 0));
  }
}

TEST_CASE("a snapshot brings the weights where they were written beside the message") {
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{5000}}) {
    const Pair pair(PayloadShape{bytes, 2, 1, 100});
    const SlotPeers peers(pair.heartbeat(Pair::reader_rank));
    SlotExchange writer = pair.end(Pair::writer_rank, staleness(unbounded_staleness));
    std::vector<std::byte> room(std::max<std::size_t>(bytes, 100));
    CHECK(peers.snapshot(Pair::writer_rank, room) == Snapshot::none);
    for (int round = 0; round < 4; ++round) {
      const MutablePayload payload = writer.acquire();
      std::memset(payload.vector(0), 2 * round + 1, bytes);
      std::memset(payload.vector(1), 99, bytes);
      std::memset(payload.weights, 2 * round, 100);
      const bool with_weights = round % 2 == 1;
      writer.publish(round, with_weights);
      CHECK(peers.snapshot(Pair::writer_rank, room) ==
            (with_weights ? Snapshot::weights : Snapshot::message));
      CHECK(whole(room.data(), with_weights ? 100 : bytes));
      CHECK(room[0] == static_cast<std::byte>(2 * round + (with_weights ? 0 : 1)));
    }
  }
}

TEST_CASE("what a snapshot has found is there in place until the publication after the next one") {
  for (const bool with_weights : {false, true}) {
    const Pair pair(PayloadShape{5000, 1, 1, 5000});
    const SlotPeers peers(pair.heartbeat(Pair::reader_rank));
    SlotExchange writer = pair.end(Pair::writer_rank, staleness(unbounded_staleness));
    const MutablePayload payload = writer.acquire();
    std::memset(payload.vector(0), 1, 5000);
    std::memset(payload.weights, 2, 5000);
    writer.publish(0, with_weights);
    std::vector<std::byte> room(10);
    Piece piece;
    const Snapshot found = peers.snapshot(Pair::writer_rank, room, piece);
    piece.offset = 4990;
    const std::byte* there = peers.in_place(Pair::writer_rank, found, piece);
    if (guarded_reads) CHECK(there == nullptr);
    if (guarded_reads) continue;
    CHECK(std::memcmp(there, room.data(), room.size()) == 0);
    CHECK(there == (with_weights ? payload.weights : payload.vector(0)) + 4990);
    write(writer, 1, 5000);
    CHECK(peers.is_intact(Pair::writer_rank, piece));
    write(writer, 2, 5000);
    CHECK_FALSE(peers.is_intact(Pair::writer_rank, piece));
  }
}

namespace {

constexpr std::size_t four_gib = std::size_t{1} << 32;
constexpr std::size_t large_bytes = four_gib + four_gib / 10;  // 1.1 x 2^32

/// Zeroed memory that takes only the pages that are touched.
std::shared_ptr<std::byte> sparse_memory(std::size_t size_bytes) {
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::runtime_error("no address space");
  return {static_cast<std::byte*>(data), [size_bytes](std::byte* p) { munmap(p, size_bytes); }};
}

}  // namespace

TEST_CASE("address arithmetic holds beyond 4 GiB") {
  const PayloadShape shape{four_gib + 12, 2, 3};
  CHECK(shape.stride_bytes() == four_gib + 4096);
  CHECK(shape.payload_bytes() == 2 * (four_gib + 12) + 24);
  CHECK(SlotLayout(shape).part_bytes() > 6 * four_gib);
  const PayloadShape large{large_bytes, 2, 1, large_bytes};
  const std::size_t vector = round_up(large_bytes, page_bytes);
  CHECK(large.stride_bytes() == vector);
  CHECK(SlotLayout(large).data_offset() == page_bytes);
  CHECK(SlotLayout(large).message_bytes() == page_bytes + vector + large_bytes);
  CHECK(SlotLayout(large).weights_offset() == 2 * page_bytes + 2 * vector);
  CHECK(SlotLayout(large).slot_bytes() == 3 * page_bytes + 3 * vector);
  const std::size_t header = SlotLayout::header_bytes;
  for (std::uint64_t sequence = 0; sequence < 7; ++sequence) {
    CHECK(SlotLayout(large).slot_offset(3, sequence) ==
          header + 1344 + sequence % 3 * (3 * page_bytes + 3 * vector));
  }
  CHECK(SlotLayout(large).part_bytes() == header + 3 * (3 * page_bytes + 3 * vector));
}

TEST_CASE("long slots of 64 workers begin in 64 lines of a page, short ones lie alike") {
  std::set<std::size_t> lines;
  for (int worker = 0; worker < 64; ++worker) {
    const std::size_t place = SlotLayout({page_bytes, 1, 0}).slot_offset(worker, 1) % page_bytes;
    CHECK(place % cache_line_bytes == 0);
    lines.insert(place);
    CHECK(SlotLayout({page_bytes - 64, 1, 0}).slot_offset(worker, 1) ==
          SlotLayout::header_bytes + page_bytes - 64);
  }
  CHECK(lines.size() == 64);
}

TEST_CASE("messages and weights of long slots share no page, and end within the part") {
  const auto last_page = [](std::size_t end) { return (end - 1) / page_bytes; };
  for (const std::size_t bytes : {page_bytes, page_bytes + 64, 3 * page_bytes - 64}) {
    for (int worker = 0; worker < 64; ++worker) {
      const SlotLayout layout({bytes, 2, 1, bytes}, true);
      std::size_t before = 0;  // the last page of what lies before
      for (std::uint64_t slot = 0; slot <= slot_count; ++slot) {
        const std::size_t begin =
            slot < slot_count ? layout.slot_offset(worker, slot) : layout.kept_offset(worker);
        const std::size_t weights = begin + layout.weights_offset();
        CHECK(before < (begin + layout.data_offset()) / page_bytes);
        CHECK(last_page(begin + layout.message_bytes()) < weights / page_bytes);
        before = last_page(weights + bytes);
        CHECK(weights + bytes <= layout.part_bytes());
      }
    }
  }
}

TEST_CASE("what is published beyond 4 GiB arrives") {
  const PayloadShape shape{large_bytes, 1, 0};
  const std::size_t part = SlotLayout(shape).part_bytes();
  const auto memory = sparse_memory(2 * part);
  const auto board = std::make_shared<const SlotBoard>(
      Region{{memory.get(), memory.get() + part}, part, memory}, shape);
  const auto end = [&](int rank) {
    const EdgePlan plan = [rank](std::int64_t) {
      return rank == 0 ? RoundEdges{{}, {1}} : RoundEdges{{0}, {}};
    };
    return SlotExchange(std::make_shared<Heartbeat>(board, rank, Seconds(5)), plan,
                        staleness(unbounded_staleness));
  };
  SlotExchange writer = end(0), reader = end(1);
  const std::size_t places[] = {0, four_gib - 1, four_gib, large_bytes - 1};
  for (int round = 0; round < 7; ++round) {
    const MutablePayload next = writer.acquire();
    for (const std::size_t place : places) next.data[place] = static_cast<std::byte>(round + 1);
    writer.publish(round);
    const Arrival arrival = reader.fetch(round).front();
    for (const std::size_t place : places) {
      CHECK(arrival.payload.data[place] == static_cast<std::byte>(round + 1));
    }
    CHECK(reader.is_intact(arrival));
  }
}
