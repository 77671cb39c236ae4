// The exchange over a slot board: workers of one host, as threads or processes.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "exchange/shared/peer_waiter.hpp"

namespace fast::exchange {

class SlotExchange : public Exchange {
 public:
  SlotExchange(const std::shared_ptr<Heart>& heart, EdgePlan plan, const ExchangeOptions& options);

  MutablePayload acquire() override;
  void publish(std::int64_t round, bool with_weights = false) override;
  Payload published() const override;
  std::vector<Arrival> fetch(std::int64_t round) override { return fetch(round, false); }
  std::vector<Arrival> fetch_early(std::int64_t round) override { return fetch(round, exact()); }
  bool await(Arrival& arrival, std::size_t bytes) override;
  Arrival::State look(int source, std::int64_t round) override;
  bool stands(const Arrival& arrival) const override;
  void complete(std::int64_t rounds) override;

 private:
  bool exact() const { return options_.staleness == 0; }
  std::vector<Arrival> fetch(std::int64_t round, bool early);
  bool find(Arrival& arrival, std::int64_t round) const;
  bool find_arriving(Arrival& arrival, std::int64_t round) const;
  Payload published(int worker, std::uint64_t sequence) const;
  bool is_published(int worker, std::uint64_t sequence) const;
  bool has_come(const Arrival& arrival) const;
  bool has_gone_on(int worker, std::int64_t round) const;
  struct Rounds {
    std::int64_t first = -1, last = -1;
  };
  void await_readers(const Rounds& rounds);

  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  EdgePlan plan_;
  ExchangeOptions options_;
  PeerWaiter waiter_;
  std::uint64_t sequence_ = 0;
  bool acquired_ = false;
  std::array<Rounds, slot_count> rounds_;  ///< of this worker's slots
  std::vector<std::uint64_t> last_read_;   ///< sequence, by worker
};

}  // namespace fast::exchange
