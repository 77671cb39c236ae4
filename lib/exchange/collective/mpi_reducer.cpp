#include "exchange/collective/mpi_reducer.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <thread>
#include <vector>

#include "exchange/collective/deaths.hpp"
#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {
namespace {

constexpr std::size_t most_values_at_once = std::size_t{1} << 30;  // MPI counts in int

MPI_Datatype type_of(float) { return MPI_FLOAT; }
MPI_Datatype type_of(double) { return MPI_DOUBLE; }

/// Starts a new deadline while any worker makes progress. False when the request is still under
/// way.
bool await_all(mpi::Request request, const std::vector<int>& members,
               const ExchangeOptions& options) {
  const auto activity = [&] { return options.activity ? options.activity() : 0; };
  std::uint64_t before = 0;
  do {
    before = activity();
    if (request.wait(Deadline(options.deadline), members)) return true;
  } while (activity() != before);
  return false;
}

}  // namespace

template <class T>
void MpiReducer::average_of(std::span<T> values) {
  // A copy, which stays allocated if MPI may still write to it after the deadline.
  auto sum = std::make_unique<std::vector<T>>(values.begin(), values.end());
  const auto began = Clock::now();
  for (std::size_t first = 0; first < sum->size(); first += most_values_at_once) {
    const std::size_t count = std::min(most_values_at_once, sum->size() - first);
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::check(MPI_Iallreduce(MPI_IN_PLACE, sum->data() + first, static_cast<int>(count),
                              type_of(T{}), MPI_SUM, communicator_.impl()->comm, &request),
               "MPI_Iallreduce");
    if (await_all({request, "MPI_Iallreduce"}, communicator_.impl()->world_ranks, options_))
      continue;
    [[maybe_unused]] const auto* leaked = sum.release();
    const std::vector<int>& ranks = communicator_.impl()->world_ranks;
    fail_without(
        {[&] { return mpi::ended_among(ranks); }, [&] { return mpi::failed_among(ranks); }},
        communicator_.rank());
    fail(ErrorKind::deadline,
         "all-reduce: worker {} waited {:.1f} s for the other workers, the last {:.1f} s without "
         "progress of any worker; an all-reduce needs every worker",
         communicator_.rank(), Seconds(Clock::now() - began).count(), options_.deadline.count());
  }
  const T factor = T{1} / static_cast<T>(communicator_.size());
  for (std::size_t e = 0; e < values.size(); ++e) values[e] = (*sum)[e] * factor;
}

template void MpiReducer::average_of(std::span<float>);
template void MpiReducer::average_of(std::span<double>);

}  // namespace fast::exchange
