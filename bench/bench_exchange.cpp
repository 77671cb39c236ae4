// The end of a round, back to back: neighbors' exchange by fast::Worker against all-reduces and
// MPI's own neighbor exchange. Every method ends with averaged weights ready for the next step.
#include <mpi.h>

#include <fast/core/random.hpp>
#include <fast/exchange/group.hpp>
#include <fast/mixing/kernels.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/rotating_arena.hpp>

#include <chrono>
#include <cmath>
#include <numeric>

#include "ranks.hpp"
#include "report.hpp"

extern "C" int fast_bench_yield;  // yield.c

using namespace fast;

namespace {

constexpr Seconds patience{120};

struct Contender {
  std::string name, topology;
  bool all_reduce = false, yields = true;
  std::function<void()> round{};
  std::function<float(std::size_t)> value{};  ///< of an element, now
  std::function<double()> fresh = [] { return 1.0; };
  std::vector<double> samples_ms{};
};

struct Setting {
  std::vector<double> megabytes{0.1, 1, 10};
  std::vector<std::string> topologies{"ring", "torus2d", "one_peer_exponential"};
};

struct Replica {
  std::vector<float> values;
  Worker worker;
  Replica(const Group& group, const std::string& topology, std::size_t count,
          const WorkerOptions& options)
      : values(count, static_cast<float>(group.rank())),
        worker(group, topology_from(topology), {view_of("x", std::span(values))}, options) {}
};

class Bench {
 public:
  Bench(Group group, std::size_t count) : group_(std::move(group)), count_(count) {}

  void add_worker(const std::string& name, const std::string& topology, WorkerOptions options,
                  bool rotating) {
    if (topology.starts_with("one_peer") && !is_power_of_two()) return;
    options.initial = Initial::as_is;
    options.deadline = patience;
    auto replica = std::make_shared<Replica>(group_, topology, count_, options);
    Contender contender{name, topology};
    if (rotating) {
      contender.round = [replica] {
        replica->worker.begin_round();
        RotatingArena<float>(replica->worker).end_round({});
      };
      contender.value = [replica](std::size_t e) {
        return RotatingArena<float>(replica->worker).weights()[e];
      };
    } else {
      contender.round = [replica] { replica->worker.step([] {}); };
      contender.value = [replica](std::size_t e) { return replica->values[e]; };
    }
    contender.fresh = [replica] {
      const WorkerStats stats = replica->worker.stats();
      return static_cast<double>(stats.fresh_reads) /
             static_cast<double>(std::max<std::int64_t>(1, stats.reads));
    };
    contenders_.push_back(std::move(contender));
  }

  void add_reducer() {
    auto values = std::make_shared<std::vector<float>>(count_, group_.rank());
    ExchangeOptions options;
    options.deadline = patience;
    std::shared_ptr<Reducer> reducer = group_.open_reducer(count_ * sizeof(float), options);
    Contender contender{"shared-memory all-reduce", "-", true};
    contender.round = [reducer, values] { reducer->average(std::span(*values)); };
    contender.value = [values](std::size_t e) { return (*values)[e]; };
    contenders_.push_back(std::move(contender));
  }

  void add_mpi_allreduce(const std::string& name, bool yields, bool blocking) {
    auto values = std::make_shared<std::vector<float>>(count_, group_.rank());
    Contender contender{name, "-", true, yields};
    const float share = 1.0F / static_cast<float>(group_.size());
    contender.round = [values, share, blocking] {
      const int count = static_cast<int>(values->size());
      if (blocking) {
        MPI_Allreduce(MPI_IN_PLACE, values->data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      } else {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(MPI_IN_PLACE, values->data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      for (float& value : *values) value *= share;
    };
    contender.value = [values](std::size_t e) { return (*values)[e]; };
    contenders_.push_back(std::move(contender));
  }

  /// Messages to and from the ring's neighbors, received whole, then averaged.
  void add_messages(bool neighbor_allgather) {
    const Schedule ring = topology_from("ring").make(group_.size());
    const std::vector<int> neighbors = mixing_row(ring.at(0), group_.rank()).neighbors;
    const std::size_t degree = neighbors.size();
    auto values = std::make_shared<std::vector<float>>(count_, group_.rank());
    auto room = std::make_shared<std::vector<float>>(count_ * (degree + 1));
    MPI_Comm graph = MPI_COMM_NULL;
    const int degree_int = static_cast<int>(degree);
    if (neighbor_allgather) {
      MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree_int, neighbors.data(), MPI_UNWEIGHTED,
                                     degree_int, neighbors.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                     &graph);
      graphs_.push_back(graph);
    }
    Contender contender{neighbor_allgather ? "MPI_Neighbor_allgather" : "MPI_Isend, MPI_Irecv",
                        "ring"};
    contender.round = [=] {
      const int count = static_cast<int>(values->size());
      const std::size_t n = values->size();
      if (neighbor_allgather) {
        MPI_Neighbor_allgather(values->data(), count, MPI_FLOAT, room->data(), count, MPI_FLOAT,
                               graph);
      } else {
        std::vector<MPI_Request> requests(2 * neighbors.size());
        for (std::size_t k = 0; k < neighbors.size(); ++k) {
          MPI_Irecv(room->data() + k * n, count, MPI_FLOAT, neighbors[k], 0, MPI_COMM_WORLD,
                    &requests[2 * k]);
          MPI_Isend(values->data(), count, MPI_FLOAT, neighbors[k], 0, MPI_COMM_WORLD,
                    &requests[2 * k + 1]);
        }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
      }
      std::vector<const float*> received;
      for (std::size_t k = 0; k < neighbors.size(); ++k) received.push_back(room->data() + k * n);
      const std::vector<float> weights(neighbors.size(),
                                       1.0F / static_cast<float>(neighbors.size() + 1));
      float* own = room->data() + neighbors.size() * n;
      mixing::average(static_cast<float*>(nullptr), own, values->data(), received, weights, n);
      mixing::stream_fence();
      std::copy_n(own, n, values->data());
    };
    contender.value = [values](std::size_t e) { return (*values)[e]; };
    contenders_.push_back(std::move(contender));
  }

  void measure(int repeats) {
    const int rounds = std::max(4, static_cast<int>(5e6 / static_cast<double>(count_)));
    for (int repeat = -1; repeat < repeats; ++repeat) {
      for (Contender& contender : contenders_) {
        fast_bench_yield = 1;
        MPI_Barrier(MPI_COMM_WORLD);
        fast_bench_yield = contender.yields ? 1 : 0;
        const auto begin = std::chrono::steady_clock::now();
        const int calls = contender.yields ? std::min(rounds, 200) : 4;
        for (int call = 0; call < calls; ++call) contender.round();
        const std::chrono::duration<double, std::milli> spent =
            std::chrono::steady_clock::now() - begin;
        fast_bench_yield = 1;
        double slowest = spent.count() / calls;
        MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (repeat >= 0) contender.samples_ms.push_back(slowest);
      }
    }
  }

  /// Every worker holds the mean of all ranks by now, in every element.
  void verify() const {
    const double mean = (group_.size() - 1) / 2.0;
    for (const Contender& contender : contenders_) {
      // Single workers may be ahead: never waiting keeps no mean. bf16 agrees to 8 bits.
      const bool exact = contender.name.find("never") == std::string::npos;
      const double tolerance = contender.name.find("bf16") != std::string::npos ? 0.02 : 1e-3;
      for (std::size_t e = 0; e < count_; ++e) {
        const double value = contender.value(e);
        const bool fits = exact ? std::abs(value - mean) <= tolerance * std::max(1.0, mean)
                                : value >= 0 && value <= group_.size() - 1;
        require(fits, ErrorKind::internal, "bench_exchange: {} on {}: element {} is {}, not {}",
                contender.name, contender.topology, e, value, mean);
      }
    }
  }

  void report_to(bench::Report& report) const {
    double best = INFINITY, yielding = INFINITY;
    std::vector<bench::Timing> timings;
    for (const Contender& contender : contenders_) {
      timings.push_back(bench::timing_of(contender.samples_ms));
      if (contender.all_reduce) best = std::min(best, timings.back().median_ms);
      if (contender.name == "MPI_Allreduce, yielding") yielding = timings.back().median_ms;
    }
    for (std::size_t c = 0; c < contenders_.size(); ++c) {
      double fresh = contenders_[c].fresh();
      MPI_Allreduce(MPI_IN_PLACE, &fresh, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      report.add(contenders_[c].name,
                 {{"topology", contenders_[c].topology},
                  {"workers", group_.size()},
                  {"bytes", count_ * sizeof(float)},
                  {"/ yielding", timings[c].median_ms / yielding},
                  {"/ best", timings[c].median_ms / best},
                  {"fresh", fresh / group_.size()}},
                 timings[c]);
    }
  }

  void close() {
    contenders_.clear();
    for (MPI_Comm& graph : graphs_) MPI_Comm_free(&graph);
  }

 private:
  bool is_power_of_two() const { return (group_.size() & (group_.size() - 1)) == 0; }

  Group group_;
  std::size_t count_;
  std::vector<Contender> contenders_;
  std::vector<MPI_Comm> graphs_;
};

void run_size(const Group& group, const Setting& setting, double megabytes, bench::Report& report) {
  Bench bench(group, static_cast<std::size_t>(megabytes * 1e6 / sizeof(float)));
  WorkerOptions coded, unbounded;
  coded.codec = codec::by_name("bf16");
  unbounded.staleness = unbounded_staleness;
  for (const std::string& topology : setting.topologies) {
    bench.add_worker("awc, fixed arena", topology, {}, false);
    bench.add_worker("awc, rotating arena", topology, {}, true);
    bench.add_worker("awc, fixed arena, bf16", topology, coded, false);
  }
  bench.add_worker("awc, fixed, never waiting", "ring", unbounded, false);
  bench.add_worker("awc, rotating, never waiting", "ring", unbounded, true);
  bench.add_reducer();
  bench.add_mpi_allreduce("MPI_Allreduce, yielding", true, true);
  bench.add_mpi_allreduce("MPI_Iallreduce, yielding", true, false);
  bench.add_mpi_allreduce("MPI_Allreduce, stock", false, true);
  bench.add_messages(false);
  bench.add_messages(true);
  bench.measure(report.repeats());
  bench.verify();
  bench.report_to(report);
  bench.close();
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    fast_bench_yield = 1;
    bench::Report report("bench_exchange");
    Setting setting;
    CLI::App app{"The end of a round against all-reduces; start with mpiexec -n 4"};
    app.add_option("--mb", setting.megabytes, "sizes of the weights, in 10^6 bytes")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--topology", setting.topologies, "names or files")->capture_default_str();
    report.add_options(app);
    const Group group(world);
    if (!bench::parse(group, app, argc, argv)) return 0;
    for (const double megabytes : setting.megabytes) {
      run_size(group, setting, megabytes, report);
    }
    return world.rank() == 0 ? report.finish() : 0;
  });
}
