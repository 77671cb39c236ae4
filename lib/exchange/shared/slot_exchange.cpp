#include "exchange/shared/slot_exchange.hpp"

namespace fast::exchange {

SlotExchange::SlotExchange(const std::shared_ptr<Heartbeat>& heartbeat, EdgePlan plan,
                           const ExchangeOptions& options)
    : board_(heartbeat->board()),
      rank_(heartbeat->rank()),
      plan_(std::move(plan)),
      exact_(options.staleness == 0),
      waiter_(heartbeat, options),
      writer_(board_, rank_, plan_, waiter_, exact_),
      reader_(board_, waiter_, options.staleness) {}

std::vector<Arrival> SlotExchange::fetch(std::int64_t round, bool early) {
  const RoundEdges edges = plan_(round);
  std::vector<Arrival> arrivals;
  arrivals.reserve(edges.sources.size());
  for (const int source : edges.sources) arrivals.push_back(reader_.fetch(source, round, early));
  return arrivals;
}

void SlotExchange::complete(std::int64_t rounds) {
  WorkerHeader& header = board_->header(rank_);
  header.reading.consumed.store(rounds, std::memory_order_release);
  header.reading.progress.store(rounds, std::memory_order_release);
  header.note_progress();
  header.notify();
}

}  // namespace fast::exchange
