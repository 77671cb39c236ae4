#include "scaling/contender.hpp"

#include <mpi.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/worker.hpp>
#include <thread>

#include "core/stopwatch.hpp"
#include "scaling/parameter_server.hpp"

namespace fast::bench {
namespace {

constexpr Seconds contender_patience{300};

class Alone final : public Contender {
 public:
  void round(const std::function<void()>& step) override {
    const Stopwatch watch(anatomy_.step_s);
    step();
  }
  Anatomy anatomy() const override { return anatomy_; }

 private:
  Anatomy anatomy_;
};

class Neighbors final : public Contender {
 public:
  Neighbors(const Group& group, const MethodOptions& options, std::span<float> weights)
      : worker_(group, topology_on_hosts(options.topology, group.hosts()), {view_of("x", weights)},
                worker_options(options)) {}
  void round(const std::function<void()>& step) override { worker_.step(step); }
  void finish() override { worker_.await_finish(); }
  Anatomy anatomy() const override {
    const WorkerStats stats = worker_.stats();
    return {stats.step_s,
            stats.publish_s,
            stats.wait_s,
            stats.mix_s,
            static_cast<double>(stats.reads),
            static_cast<double>(stats.fresh_reads)};
  }

 private:
  static WorkerOptions worker_options(const MethodOptions& options) {
    WorkerOptions made;
    made.algorithm =
        algorithm::by_name(options.rule, algorithm::parameters_from(options.rule_options));
    made.codec = codec::by_name(options.codec);
    made.staleness = options.staleness;
    made.initial = Initial::as_is;
    made.deadline = contender_patience;
    return made;
  }
  Worker worker_;
};

/// A step, then `combine` on the weights.
class AfterStep final : public Contender {
 public:
  AfterStep(std::span<float> weights, std::function<void(std::span<float>)> combine)
      : weights_(weights), combine_(std::move(combine)) {}
  void round(const std::function<void()>& step) override {
    {
      const Stopwatch watch(anatomy_.step_s);
      step();
    }
    const Stopwatch watch(anatomy_.wait_s);
    combine_(weights_);
  }
  Anatomy anatomy() const override { return anatomy_; }

 private:
  std::span<float> weights_;
  std::function<void(std::span<float>)> combine_;
  Anatomy anatomy_;
};

/// Sleeps between its tests, as MPICH would keep the core of other ranks busy.
void mpi_average(std::span<float> values, int ranks) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                 MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (float& value : values) value /= static_cast<float>(ranks);
}

}  // namespace

std::unique_ptr<Contender> make_contender(const mpi::Communicator& world, const Group& group,
                                          const MethodOptions& options, std::span<float> weights) {
  const std::string& name = options.method;
  if (name == "none") return std::make_unique<Alone>();
  if (name == "neighbors") return std::make_unique<Neighbors>(group, options, weights);
  if (name == "server" || name == "server_async")
    return std::make_unique<ServedWorker>(world, weights, name == "server");
  if (name == "allreduce") {
    ExchangeOptions exchange;
    exchange.deadline = contender_patience;
    std::shared_ptr<Reducer> reducer = group.open_reducer(weights.size_bytes(), exchange);
    return std::make_unique<AfterStep>(
        weights, [reducer](std::span<float> values) { reducer->average(values); });
  }
  require(name == "mpi_allreduce", ErrorKind::argument,
          "--method: \"{}\"; none, neighbors, allreduce, mpi_allreduce, server or server_async is "
          "required",
          name);
  return std::make_unique<AfterStep>(
      weights, [ranks = world.size()](std::span<float> values) { mpi_average(values, ranks); });
}

}  // namespace fast::bench
