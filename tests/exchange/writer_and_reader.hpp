// The two halves of a slot exchange, a writer and a reader, in one process.
#pragma once

#include "exchange/pair.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "exchange/shared/slot_reader.hpp"
#include "exchange/shared/slot_writer.hpp"

namespace fast::testing {

struct WriterAndReader {
  explicit WriterAndReader(std::int64_t staleness) : bound(staleness) {}

  static ExchangeOptions quick() {
    ExchangeOptions options;
    options.deadline = Seconds(0.3);
    return options;
  }
  static RoundEdges writes(std::int64_t /*round*/) { return {{}, {Pair::reader_rank}}; }
  static RoundEdges reads(std::int64_t /*round*/) { return {{Pair::writer_rank}, {}}; }

  std::int64_t bound;
  Pair pair{64};
  exchange::SlotPeers writer_peers{pair.heartbeat(Pair::writer_rank)};
  exchange::SlotPeers reader_peers{pair.heartbeat(Pair::reader_rank)};
  exchange::PeerWaiter writer_waits{pair.heartbeat(Pair::writer_rank), quick()};
  exchange::PeerWaiter reader_waits{pair.heartbeat(Pair::reader_rank), quick()};
  exchange::SlotWriter writer{pair.board, Pair::writer_rank, writes, writer_waits, bound == 0};
  exchange::SlotReader reader{pair.board, Pair::reader_rank, reads, reader_waits, bound};

  void publish(std::int64_t round) {
    writer.acquire();
    writer.publish(round, false);
  }
  Arrival fetch(std::int64_t round) { return reader.fetch(round, false).front(); }
};

}  // namespace fast::testing
