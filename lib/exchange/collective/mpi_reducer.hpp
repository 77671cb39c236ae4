// All-reduce over any ranks: MPI_Iallreduce, with a wait that yields the core.
#pragma once

#include <fast/exchange/exchange.hpp>
#include <fast/exchange/reducer.hpp>
#include <fast/mpi/communicator.hpp>

namespace fast::exchange {

class MpiReducer : public Reducer {
 public:
  MpiReducer(const mpi::Communicator& communicator, const ExchangeOptions& options)
      : communicator_(communicator), options_(options) {}
  void average(std::span<float> values) override { average_of(values); }
  void average(std::span<double> values) override { average_of(values); }

 private:
  template <class T>
  void average_of(std::span<T> values);

  mpi::Communicator communicator_;
  ExchangeOptions options_;
};

}  // namespace fast::exchange
