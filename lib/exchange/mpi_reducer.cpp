#include "exchange/mpi_reducer.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <vector>

#include "mpi/impl.hpp"

namespace fast::exchange {
namespace {

constexpr std::size_t most_at_once = std::size_t{1} << 30;  // MPI counts in int

template <class T>
void average_of(const mpi::Communicator& communicator, Seconds limit, std::span<T> values,
                MPI_Datatype type) {
  // A copy of its own, left behind when MPI may still write to it after the deadline.
  auto sum = std::make_unique<std::vector<T>>(values.begin(), values.end());
  const Deadline deadline(limit);
  for (std::size_t first = 0; first < sum->size(); first += most_at_once) {
    const std::size_t count = std::min(most_at_once, sum->size() - first);
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::check(MPI_Iallreduce(MPI_IN_PLACE, sum->data() + first, static_cast<int>(count), type,
                              MPI_SUM, communicator.impl()->comm, &request),
               "MPI_Iallreduce");
    if (mpi::wait(request, deadline)) continue;
    [[maybe_unused]] const auto* leaked = sum.release();
    fail(ErrorKind::deadline,
         "all-reduce: worker {} waited {:.1f} s for the others; an all-reduce needs every worker",
         communicator.rank(), deadline.elapsed_s());
  }
  const T factor = T{1} / static_cast<T>(communicator.size());
  for (std::size_t e = 0; e < values.size(); ++e) values[e] = (*sum)[e] * factor;
}

}  // namespace

void MpiReducer::average(std::span<float> values) {
  average_of(communicator_, deadline_, values, MPI_FLOAT);
}

void MpiReducer::average(std::span<double> values) {
  average_of(communicator_, deadline_, values, MPI_DOUBLE);
}

}  // namespace fast::exchange
