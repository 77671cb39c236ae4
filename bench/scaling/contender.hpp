// What bench_scaling compares: ways by which workers keep their weights together.
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/mpi/communicator.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fast::bench {

struct MethodOptions {
  std::string method = "neighbors";
  std::string topology = "ring", rule = "awc", codec = "identity";
  std::vector<std::string> rule_options;  ///< "period=50"
  std::int64_t staleness = 0;
};

/// Where a worker's time went, in seconds, and what it has read.
struct Anatomy {
  double step_s = 0, publish_s = 0, wait_s = 0, mix_s = 0;
  double reads = 0, fresh_reads = 0;  ///< publications of neighbors; those not read before
};

/// One worker's part. Calls are one thread's.
class Contender {
 public:
  virtual ~Contender() = default;
  /// Calls `step`, which changes the weights, and combines them with those of other workers.
  virtual void round(const std::function<void()>& step) = 0;
  /// Collective, after the last round.
  virtual void finish() {}
  virtual Anatomy anatomy() const = 0;
};

/// none, neighbors, allreduce (fast::Reducer), mpi_allreduce (MPI_Allreduce), server (rank 0 waits
/// for all), server_async (rank 0 takes what comes). Collective. `weights` outlive the method.
/// Throws Error(argument) for an unknown name.
std::unique_ptr<Contender> make_contender(const mpi::Communicator& world, const Group& group,
                                          const MethodOptions& options, std::span<float> weights);

}  // namespace fast::bench
