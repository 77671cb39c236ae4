// The exchange over slots: workers of one host, as threads or processes, and mirrors of the others.
#pragma once

#include <memory>
#include <vector>

#include "exchange/shared/slot_reader.hpp"
#include "exchange/shared/slot_writer.hpp"

namespace fast::exchange {

class SlotExchange : public Exchange {
 public:
  SlotExchange(const std::shared_ptr<Heartbeat>& heartbeat, const EdgePlan& plan,
               const ExchangeOptions& options)
      : waiter_(heartbeat, options),
        writer_(heartbeat->board(), heartbeat->rank(), plan, waiter_, options.staleness == 0),
        reader_(heartbeat->board(), heartbeat->rank(), plan, waiter_, options.staleness) {}
  SlotExchange(const SlotExchange&) = delete;
  SlotExchange& operator=(const SlotExchange&) = delete;

  MutablePayload acquire() override { return writer_.acquire(); }
  void publish(std::int64_t round, bool with_weights = false) override {
    reader_.before_publication(round);
    writer_.publish(round, with_weights);
  }
  Payload published() const override { return writer_.published(); }
  std::uint64_t sequence() const override { return writer_.sequence(); }

  std::vector<Arrival> fetch(std::int64_t round) override { return reader_.fetch(round, false); }
  std::vector<Arrival> fetch_early(std::int64_t round) override {
    return reader_.fetch(round, true);
  }
  bool await(Arrival& arrival, std::size_t bytes) override { return reader_.await(arrival, bytes); }
  Arrival::State look(int source, std::int64_t round) override {
    return reader_.look(source, round);
  }
  bool is_intact(const Arrival& arrival) const override { return reader_.is_intact(arrival); }
  void complete(std::int64_t rounds) override { reader_.complete(rounds); }

 private:
  PeerWaiter waiter_;
  SlotWriter writer_;
  SlotReader reader_;
};

}  // namespace fast::exchange
