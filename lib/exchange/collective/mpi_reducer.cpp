#include "exchange/collective/mpi_reducer.hpp"

#include <algorithm>
#include <exception>
#include <fast/core/error.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "core/leak_until_exit.hpp"
#include "mpi/impl.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {
namespace {

constexpr std::size_t most_values_at_once = std::size_t{1} << 30;  // MPI counts in int

MPI_Datatype type_of(float) { return MPI_FLOAT; }
MPI_Datatype type_of(double) { return MPI_DOUBLE; }

/// Keeps a buffer for good if an exception ends its scope.
template <class T>
class KeptAfterError {
 public:
  explicit KeptAfterError(std::shared_ptr<T> buffer) : buffer_(std::move(buffer)) {}
  KeptAfterError(const KeptAfterError&) = delete;
  KeptAfterError& operator=(const KeptAfterError&) = delete;
  ~KeptAfterError() {
    if (std::uncaught_exceptions() > passing_) leak_until_exit(buffer_);
  }

 private:
  std::shared_ptr<T> buffer_;
  int passing_ = std::uncaught_exceptions();
};

/// Starts a new deadline while any worker makes progress. False when the request is still under
/// way. `ranks`: of the world.
bool await_all(mpi::Request request, const std::vector<int>& ranks, const ReducerLink& link,
               Seconds deadline) {
  const auto activity = [&] { return link.peers->heartbeat()->own().activity; };
  std::uint64_t before = 0;
  do {
    before = activity();
    if (request.wait(Deadline(deadline), ranks, [&] { return !link.ends.failed().empty(); }))
      return true;
    stop_for_failure(link.ends, link.rank());
  } while (activity() != before);
  return false;
}

}  // namespace

MpiReducer::MpiReducer(const mpi::Communicator& communicator, ReducerLink link, Seconds deadline)
    : communicator_(mpi::duplicate(communicator, Deadline(deadline), "opening all-reduce")),
      link_(std::move(link)),
      deadline_(deadline) {}

template <class T>
void MpiReducer::average_of(std::span<T> values) {
  // MPI may write to it after an error.
  const auto sum = std::make_shared<std::vector<T>>(values.begin(), values.end());
  const KeptAfterError kept(sum);
  const auto began = Clock::now();
  for (std::size_t first = 0; first < sum->size(); first += most_values_at_once) {
    const std::size_t count = std::min(most_values_at_once, sum->size() - first);
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::check(MPI_Iallreduce(MPI_IN_PLACE, sum->data() + first, static_cast<int>(count),
                              type_of(T{}), MPI_SUM, communicator_.impl()->comm, &request),
               "MPI_Iallreduce");
    const std::vector<int>& ranks = communicator_.impl()->world_ranks;
    if (await_all({request, "MPI_Iallreduce"}, ranks, link_, deadline_)) continue;
    if (link_.ends.all) fail_without(link_.ends, communicator_.rank());
    fail(ErrorKind::deadline,
         "all-reduce: worker {} waited {:.1f} s for the other workers, the last {:.1f} s without "
         "progress of any worker; an all-reduce needs every worker",
         communicator_.rank(), Seconds(Clock::now() - began).count(), deadline_.count());
  }
  const T factor = T{1} / static_cast<T>(communicator_.size());
  for (std::size_t e = 0; e < values.size(); ++e) values[e] = (*sum)[e] * factor;
}

template void MpiReducer::average_of(std::span<float>);
template void MpiReducer::average_of(std::span<double>);

}  // namespace fast::exchange
