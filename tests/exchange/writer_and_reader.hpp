// Two ends of a slot exchange, a writer and a reader, in one process.
#pragma once

#include "exchange/pair.hpp"
#include "exchange/shared/slot_peers.hpp"

namespace fast::testing {

struct WriterAndReader {
  explicit WriterAndReader(std::int64_t staleness) : bound(staleness) {}

  ExchangeOptions quick() const {
    ExchangeOptions options;
    options.staleness = bound;
    options.deadline = Seconds(0.3);
    options.suspect_after = Seconds(5);
    return options;
  }

  std::int64_t bound;
  Pair pair{64};
  exchange::SlotPeers writer_peers{pair.heartbeat(Pair::writer_rank)};
  exchange::SlotPeers reader_peers{pair.heartbeat(Pair::reader_rank)};
  exchange::SlotExchange writer = pair.end(Pair::writer_rank, quick());
  exchange::SlotExchange reader = pair.end(Pair::reader_rank, quick());

  void publish(std::int64_t round) {
    writer.acquire();
    writer.publish(round);
  }
  Arrival fetch(std::int64_t round) { return reader.fetch(round).front(); }
};

}  // namespace fast::testing
