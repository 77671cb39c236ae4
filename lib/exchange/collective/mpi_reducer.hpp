// All-reduce over any ranks. Programs of one process do not need this file, nor MPI.
#pragma once

#include <fast/mpi/communicator.hpp>

#include "exchange/collective/all_reduce.hpp"

namespace fast::exchange {

/// MPI_Iallreduce, with a wait that yields the core.
class MpiReducer : public Reducer {
 public:
  /// Collective. Calls that a failure leaves unfinished disturb no other call of `communicator`.
  MpiReducer(const mpi::Communicator& communicator, ReducerLink link, Seconds deadline);
  ~MpiReducer() override { link_.announce_failure(); }
  MpiReducer(const MpiReducer&) = delete;
  MpiReducer& operator=(const MpiReducer&) = delete;
  void average(std::span<float> values) override { average_of(values); }
  void average(std::span<double> values) override { average_of(values); }

 private:
  template <class T>
  void average_of(std::span<T> values);

  mpi::Communicator communicator_;
  ReducerLink link_;
  Seconds deadline_;
};

}  // namespace fast::exchange
