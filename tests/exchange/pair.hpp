// Two workers' memory, both ends in one process, for tests of what is between them.
#pragma once

#include <cstring>
#include <fast/core/memory.hpp>
#include <memory>

#include "exchange/shared/slot_exchange.hpp"

namespace fast::testing {

/// Worker 0 writes, 1 reads.
struct Pair {
  static constexpr int writer_rank = 0, reader_rank = 1;
  PayloadShape shape;
  std::shared_ptr<AlignedBuffer> memory;
  std::shared_ptr<const exchange::SlotBoard> board;

  explicit Pair(std::size_t bytes) : Pair(PayloadShape{bytes, 1, 0}) {}
  explicit Pair(const PayloadShape& of_payloads) : shape(of_payloads) {
    const std::size_t part = round_up(exchange::SlotLayout(shape, true).part_bytes(), page_bytes);
    memory = std::make_shared<AlignedBuffer>(2 * part + page_bytes);
    const std::size_t base = round_up(reinterpret_cast<std::size_t>(memory->data()), page_bytes);
    const Region region{
        {reinterpret_cast<std::byte*>(base), reinterpret_cast<std::byte*>(base + part)},
        part,
        memory};
    board = std::make_shared<const exchange::SlotBoard>(region, shape, true);
  }

  /// It does not beat by itself: a SlotPeers or beat() makes it.
  std::shared_ptr<exchange::Heartbeat> heartbeat(
      int rank, std::optional<Seconds> suspect_after = Seconds(5)) const {
    return std::make_shared<exchange::Heartbeat>(board, rank, suspect_after);
  }

  exchange::SlotExchange end(int rank, const ExchangeOptions& options) const {
    return {heartbeat(rank, options.suspect_after),
            [rank](std::int64_t) {
              return rank == writer_rank ? RoundEdges{{}, {reader_rank}}
                                         : RoundEdges{{writer_rank}, {}};
            },
            options};
  }
};

inline ExchangeOptions staleness(std::int64_t bound) {
  ExchangeOptions options;
  options.staleness = bound;
  options.deadline = Seconds(20);
  return options;
}

inline void write(exchange::SlotExchange& writer, std::int64_t round, std::size_t bytes) {
  std::memset(writer.acquire().data, static_cast<int>(round & 0xff), bytes);
  writer.publish(round);
}

/// All bytes equal?
inline bool whole(const std::byte* data, std::size_t bytes) {
  return std::memcmp(data, data + 1, bytes - 1) == 0;
}

}  // namespace fast::testing
