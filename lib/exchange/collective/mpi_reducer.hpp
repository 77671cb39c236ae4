// All-reduce over any ranks: MPI_Iallreduce, with a wait that yields the core.
#pragma once

#include <fast/exchange/exchange.hpp>
#include <fast/exchange/reducer.hpp>
#include <fast/mpi/communicator.hpp>

#include "exchange/collective/deaths.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {

class MpiReducer : public Reducer {
 public:
  /// Collective. Calls that a failure leaves unfinished disturb no other call of `communicator`.
  /// `peers` may be null. If not, an exception that passes is announced on them.
  MpiReducer(const mpi::Communicator& communicator, const ExchangeOptions& options,
             ExitReports ends, std::shared_ptr<Peers> peers);
  ~MpiReducer() override;
  MpiReducer(const MpiReducer&) = delete;
  MpiReducer& operator=(const MpiReducer&) = delete;
  void average(std::span<float> values) override { average_of(values); }
  void average(std::span<double> values) override { average_of(values); }

 private:
  template <class T>
  void average_of(std::span<T> values);
  bool await_all(mpi::Request request) const;

  mpi::Communicator communicator_;
  ExchangeOptions options_;
  ExitReports ends_;
  std::shared_ptr<Peers> peers_;
};

}  // namespace fast::exchange
