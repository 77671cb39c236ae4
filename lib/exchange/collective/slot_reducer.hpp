// All-reduce over shared memory: each worker reduces one slice of all vectors, then gathers the
// other slices.
#pragma once

#include <fast/exchange/reducer.hpp>

#include <memory>

#include "exchange/collective/deaths.hpp"
#include "exchange/shared/peer_waiter.hpp"
#include "exchange/shared/slot_peers.hpp"

namespace fast::exchange {

class SlotReducer : public Reducer {
 public:
  /// The board's payload is one vector of the largest size that will be averaged. Slot 0 takes
  /// inputs, slot 1 results. If `ends` reports deaths, a worker that is silent is waited for until
  /// it is known to have ended; else until it is a suspect.
  SlotReducer(const std::shared_ptr<Heartbeat>& heartbeat, const ExchangeOptions& options,
              ExitReports ends);
  /// Announces a failure to the others if an exception is passing.
  ~SlotReducer() override;
  SlotReducer(const SlotReducer&) = delete;
  SlotReducer& operator=(const SlotReducer&) = delete;
  void average(std::span<float> values) override { average_of(values); }
  void average(std::span<double> values) override { average_of(values); }

 private:
  template <class T>
  void average_of(std::span<T> values);
  void arrive(std::int64_t phase);
  void await(int worker, std::int64_t phase);

  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  SlotPeers peers_;
  PeerWaiter waiter_;
  ExitReports ends_;
  std::int64_t calls_ = 0;
};

}  // namespace fast::exchange
