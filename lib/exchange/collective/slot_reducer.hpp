// All-reduce over shared memory: every worker reduces one slice of all vectors, then collects the
// others' slices.
#pragma once

#include <fast/exchange/reducer.hpp>
#include <memory>

#include "exchange/shared/peer_waiter.hpp"
#include "exchange/shared/slot_peers.hpp"

namespace fast::exchange {

class SlotReducer : public Reducer {
 public:
  /// `board` has one vector of the largest size to come; its first slot takes inputs, its second
  /// results.
  SlotReducer(const std::shared_ptr<Heart>& heart, const ExchangeOptions& options);
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
  std::int64_t calls_ = 0;
};

}  // namespace fast::exchange
