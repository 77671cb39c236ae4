// The exchange over slots: workers of one host, as threads or processes, and mirrors of the others.
#pragma once

#include <fast/exchange/exchange.hpp>

#include <array>
#include <memory>
#include <vector>

#include "exchange/shared/peer_waiter.hpp"
#include "exchange/shared/slot_board.hpp"

namespace fast::exchange {

/// Publishes in this worker's own slots, one after the other. At staleness 0, a slot is written
/// again only after all readers of its rounds have read it. Above 0, readers check by themselves
/// (seqlock.hpp).
///
/// Reads the slots of other workers in place. At staleness 0, it finds exactly the publication of a
/// round; above 0, the newest one that is recent enough. A reader of this worker completes round t
/// with this worker's publication of round t - staleness or a later one, or without this worker. If
/// it has completed round t and there was no such publication yet, it has gone on without this
/// worker. This worker then does not use that neighbor's publications of the time either. Otherwise
/// this worker alone would move towards the neighbor, and the mean of both would move.
class SlotExchange final : public Exchange {
 public:
  SlotExchange(const std::shared_ptr<Heartbeat>& heartbeat, EdgePlan plan,
               const ExchangeOptions& options);
  SlotExchange(const SlotExchange&) = delete;
  SlotExchange& operator=(const SlotExchange&) = delete;

  MutablePayload acquire() override;
  void publish(std::int64_t round, bool with_weights = false) override;
  Payload published() const override { return read_only(board_->payload(rank_, sequence_)); }
  std::uint64_t sequence() const override { return sequence_; }

  std::vector<Arrival> fetch(std::int64_t round) override { return fetch_all(round, false); }
  std::vector<Arrival> fetch_early(std::int64_t round) override {
    return fetch_all(round, exact());
  }
  bool await(Arrival& arrival, std::size_t bytes) override;
  Arrival::State look(int source, std::int64_t round) override;
  bool is_intact(const Arrival& arrival) const override;
  void complete(std::int64_t rounds) override;

 private:
  bool exact() const { return staleness_ == 0; }

  // Publishing.
  struct Rounds {
    std::int64_t first = -1, last = -1;
  };
  void wait_for_readers(const Rounds& rounds);
  void note_readers_ahead(std::int64_t round);
  void publish_acquired(std::int64_t round, bool with_weights);

  // Reading. `early`: also finds payloads that are still arriving.
  std::vector<Arrival> fetch_all(std::int64_t round, bool early);
  Arrival fetch_from(int source, const RoundEdges& edges, std::int64_t round, bool early);
  bool is_recent(std::int64_t first, std::int64_t last, std::int64_t round) const;
  bool find(Arrival& arrival, std::int64_t round) const;
  bool find_arriving(Arrival& arrival, std::int64_t round) const;
  bool has_arrived(const Arrival& arrival) const;
  bool has_completed(int worker, std::int64_t round) const;
  bool has_left_out(int source, const RoundEdges& edges) const;
  bool goes_on_alone(int source, std::int64_t round) const;
  void note_read(Arrival& arrival, std::int64_t round);

  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  EdgePlan plan_;
  PeerWaiter waiter_;
  std::int64_t staleness_;
  std::uint64_t payloads_;  ///< see ExchangeOptions

  std::uint64_t sequence_ = 0;
  bool acquired_ = false;
  std::array<Rounds, slot_count> rounds_;  ///< of this worker's slots
  std::vector<int> ahead_;  ///< readers that had completed the round of the latest publication
                            ///< before it was published; at staleness 0

  std::vector<std::uint64_t> last_read_;  ///< sequence, by worker
  std::vector<bool> absent_;              ///< by worker: in the latest fetch from it
};

}  // namespace fast::exchange
