// Worker 0 of another host and worker 1 of this one, in one process: each host has a board of its
// own, and a window lets worker 1 read the other host's.
#pragma once

#include "exchange/pair.hpp"
#include "exchange/remote/replicator.hpp"
#include "mpi/remote_window.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

namespace fast::testing {

struct TwoHosts {
  static constexpr std::size_t bytes = std::size_t{3} << 20;  // more than one chunk

  explicit TwoHosts(const PayloadShape& shape = PayloadShape{bytes, 1, 0})
      : there(shape), here(shape) {
    remote().constant.magic.store(exchange::board_magic);
  }

  Pair there, here;
  mpi::RemoteWindow window{world(),
                           reinterpret_cast<std::byte*>(&there.board->header(Pair::writer_rank)),
                           there.board->layout().part_bytes(), there.memory, Deadline(Seconds(20))};
  exchange::SlotExchange writer = there.end(Pair::writer_rank, staleness(unbounded_staleness));
  exchange::SlotExchange reader = here.end(Pair::reader_rank, staleness(0));
  exchange::RemoteEdges edges{here.board,
                              Pair::reader_rank,
                              [](std::int64_t) {
                                return RoundEdges{{Pair::writer_rank}, {}}; },
                              0,
                              exchange::Throttle(),
                              exchange::SendBuffers(here.board, Pair::reader_rank)};

  exchange::WorkerHeader& remote() const { return there.board->header(Pair::writer_rank); }
  exchange::WorkerHeader& mirror() const { return here.board->header(Pair::writer_rank); }
  std::uint64_t mirrored() const { return mirror().publication.sequence.load(); }
  WorkerStatus mirrored_status() const { return exchange::status_of(mirror()); }

  void publish(std::int64_t round) { write(writer, round, there.shape.vector_bytes); }
  void set_status(WorkerStatus status) const {
    remote().life.status.store(static_cast<std::uint32_t>(status));
  }

  /// Calls `step` until `holds`.
  template <class Step, class Condition>
  static void repeat_until(const Step& step, const Condition& holds) {
    const Deadline deadline(Seconds(20));
    do step();
    while (!holds() && !deadline.expired());
    REQUIRE(holds());
  }
};

}  // namespace fast::testing
