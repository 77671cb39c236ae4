// All-reduce over any ranks: a nonblocking MPI_Allreduce that gives the core away while it waits.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/reducer.hpp>
#include <fast/mpi/communicator.hpp>

namespace fast::exchange {

class MpiReducer : public Reducer {
 public:
  MpiReducer(const mpi::Communicator& communicator, Seconds deadline)
      : communicator_(communicator), deadline_(deadline) {}
  void average(std::span<float> values) override;
  void average(std::span<double> values) override;

 private:
  mpi::Communicator communicator_;
  Seconds deadline_;
};

}  // namespace fast::exchange
