// How long workers that start from different random vectors take to agree: until their consensus
// distance has shrunk a thousandfold, by topology and staleness, against an all-reduce.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/worker.hpp>
#include <optional>

#include "ranks.hpp"
#include "report.hpp"

using namespace fast;

namespace {

struct Options {
  double megabytes = 1, factor = 1000, step_ms = 0;
  std::vector<std::string> topologies{"ring", "one_peer_exponential"}, stalenesses{"0", "inf"};
};

void describe(CLI::App& app, Options& o) {
  app.add_option("--mb", o.megabytes, "size of a worker's vector, in 10^6 bytes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--factor", o.factor, "by how much the consensus distance is to shrink")
      ->check(CLI::Range(2.0, 1e4))
      ->capture_default_str();
  app.add_option("--sleep", o.step_ms, "milliseconds slept in each round, as if something trained")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--topology", o.topologies, "names or files, each a method")
      ->capture_default_str();
  app.add_option("--staleness", o.stalenesses, "numbers of rounds or inf, each a method")
      ->capture_default_str();
}

/// Elements that tell how near the workers are, as all are combined alike. Looking at these few
/// after every round costs nothing; looking at all would be what is timed.
constexpr std::size_t probe_count = 64;
using Probe = std::array<float, probe_count>;

/// A worker's probe after each of its rounds, and when that was, since the common start.
struct Trace {
  std::vector<double> times_ms;
  std::vector<Probe> probes;  ///< one more than times: the start's in front
};

double distance(const std::vector<Probe>& workers) {
  double sum = 0;
  for (std::size_t e = 0; e < probe_count; ++e) {
    double mean = 0;
    for (const Probe& probe : workers) mean += double{probe[e]} / double(workers.size());
    for (const Probe& probe : workers) sum += (probe[e] - mean) * (probe[e] - mean);
  }
  return std::sqrt(sum / static_cast<double>(workers.size()));
}

struct Agreement {
  double time_ms = 0;
  double rounds = 0;  ///< that a worker had made by then, on average
};

/// When the distance fell below its start's by `factor`, for good; nothing when it did not.
std::optional<Agreement> agreement(const std::vector<Trace>& traces, double factor) {
  struct Event {
    double time_ms;
    std::size_t worker, round;
  };
  std::vector<Event> events;
  std::vector<Probe> now;
  for (std::size_t w = 0; w < traces.size(); ++w) {
    now.push_back(traces[w].probes.front());
    for (std::size_t t = 0; t < traces[w].times_ms.size(); ++t) {
      events.push_back({traces[w].times_ms[t], w, t + 1});
    }
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time_ms < b.time_ms; });
  const double enough = distance(now) / factor;
  std::optional<Agreement> reached;
  for (std::size_t e = 0; e < events.size(); ++e) {
    now[events[e].worker] = traces[events[e].worker].probes[events[e].round];
    if (distance(now) > enough) {
      reached.reset();
    } else if (!reached) {
      reached = {events[e].time_ms,
                 static_cast<double>(e + 1) / static_cast<double>(traces.size())};
    }
  }
  return reached;
}

std::vector<Trace> gather(const Group& group, const Trace& mine) {
  std::vector<double> flat = mine.times_ms;
  for (const Probe& probe : mine.probes) flat.insert(flat.end(), probe.begin(), probe.end());
  std::vector<Trace> all;
  for (const auto& values : bench::gather(group, flat)) {
    Trace trace;
    const auto probes = values.begin() + static_cast<std::ptrdiff_t>(mine.times_ms.size());
    trace.times_ms.assign(values.begin(), probes);
    trace.probes.resize(mine.probes.size());
    for (std::size_t k = 0; k < mine.probes.size() * probe_count; ++k) {
      trace.probes[k / probe_count][k % probe_count] =
          static_cast<float>(probes[static_cast<std::ptrdiff_t>(k)]);
    }
    all.push_back(std::move(trace));
  }
  return all;
}

/// A way to agree.
class Method {
 public:
  Method(const Group& group, const Options& o, std::string name, std::string topology,
         std::string staleness)
      : group_(group),
        o_(o),
        name_(std::move(name)),
        topology_(std::move(topology)),
        staleness_(std::move(staleness)),
        x_(std::max<std::size_t>(probe_count,
                                 static_cast<std::size_t>(o.megabytes * 1e6) / sizeof(float))) {
    if (name_ == "allreduce") {
      reducer_ = group_.open_reducer(x_.size() * sizeof(float), {});
      rounds_ = 1;
      return;
    }
    WorkerOptions options;
    options.initial = Initial::as_is;
    options.staleness = bench::staleness_of(staleness_);
    worker_.emplace(group_, topology_from(topology_),
                    std::vector<TensorView>{view_of("x", std::span(x_))}, options);
  }

  /// With twice as many rounds until they are enough.
  void run(std::uint64_t seed, bool counts) {
    for (std::optional<Agreement> agreed; !agreed; rounds_ *= agreed ? 1 : 2) {
      require(rounds_ < (1 << 22), ErrorKind::internal,
              "bench_consensus: {} on {}, staleness {}, does not agree within {} rounds; choose a "
              "topology that is connected",
              name_, topology_, staleness_, rounds_);
      agreed = attempt(seed);
      if (!agreed || !counts) continue;
      times_ms_.push_back(agreed->time_ms);
      round_counts_.push_back(agreed->rounds);
    }
  }

  void add_to(bench::Report& report, double allreduce_ms) {
    bench::Row row{{"topology", topology_},
                   {"staleness", staleness_},
                   {"workers", group_.size()},
                   {"bytes", x_.size() * sizeof(float)},
                   {"sleep_ms", o_.step_ms},
                   {"rounds", bench::timing_of(round_counts_).median_ms},
                   {"of_allreduce", median_ms() / allreduce_ms}};
    if (reads_ > 0) row["fresh"] = fresh_ / reads_;
    report.add(name_, row, bench::timing_of(times_ms_));
  }

  double median_ms() const { return bench::timing_of(times_ms_).median_ms; }

 private:
  std::optional<Agreement> attempt(std::uint64_t seed) {
    Rng rng(mix_seed(seed, static_cast<std::uint64_t>(group_.rank())));
    for (float& value : x_) value = static_cast<float>(rng.uniform(-1, 1));
    if (worker_) worker_->republish();
    const WorkerStats before = worker_ ? worker_->stats() : WorkerStats{};
    Trace trace;
    trace.times_ms.reserve(static_cast<std::size_t>(rounds_));
    trace.probes.reserve(static_cast<std::size_t>(rounds_) + 1);
    const auto look = [&] {
      trace.probes.emplace_back();
      for (std::size_t e = 0; e < probe_count; ++e) {
        trace.probes.back()[e] = x_[e * (x_.size() / probe_count)];
      }
    };
    look();
    const auto start = bench::start_together(group_);
    for (std::int64_t round = 0; round < rounds_; ++round) {
      one_round();
      trace.times_ms.push_back(1e3 * Seconds(Clock::now() - start).count());
      look();
    }
    const auto traces = gather(group_, trace);
    count_fresh(before);
    verify(traces);
    return agreement(traces, o_.factor);
  }

  void one_round() {
    const auto compute = [this] {
      if (o_.step_ms > 0) bench::sleep_ms(o_.step_ms);
    };
    if (worker_) {
      worker_->step(compute);
    } else {
      compute();
      reducer_->average(std::span(x_));
    }
  }

  void count_fresh(const WorkerStats& before) {
    if (!worker_) return;
    const WorkerStats after = worker_->stats();
    for (const auto& counts :
         bench::gather(group_, {static_cast<double>(after.reads - before.reads),
                                static_cast<double>(after.fresh_reads - before.fresh_reads)})) {
      reads_ += counts[0];
      fresh_ += counts[1];
    }
  }

  /// Every element within the starts' range, and where mixing is synchronous their mean kept.
  void verify(const std::vector<Trace>& traces) const {
    for (const float value : x_) {
      require(std::abs(value) <= 1.00001F, ErrorKind::internal,
              "bench_consensus: {} made a value of {} from some between -1 and 1", name_, value);
    }
    if (worker_ && staleness_ != "0") return;
    for (std::size_t e = 0; e < probe_count; ++e) {
      double moved = 0;
      for (const Trace& trace : traces) moved += trace.probes.back()[e] - trace.probes.front()[e];
      moved /= static_cast<double>(traces.size());
      require(std::abs(moved) < 1e-4, ErrorKind::internal,
              "bench_consensus: {} on {} moved the mean by {}; choose a topology whose weights are "
              "doubly stochastic",
              name_, topology_, moved);
    }
  }

  Group group_;
  Options o_;
  std::string name_, topology_, staleness_;
  std::vector<float> x_;
  std::optional<Worker> worker_;
  std::unique_ptr<Reducer> reducer_;
  std::int64_t rounds_ = 32;
  std::vector<double> times_ms_, round_counts_;
  double reads_ = 0, fresh_ = 0;
};

int run(const Group& group, int argc, char** argv) {
  Options o;
  bench::Report report("bench_consensus");
  CLI::App app{"Time until workers agree; start with mpiexec", "bench_consensus"};
  describe(app, o);
  report.add_options(app);
  if (!bench::parse(group, app, argc, argv)) return 0;
  require(group.size() > 1, ErrorKind::argument,
          "bench_consensus: one worker agrees with itself; start with mpiexec -n 2 or more");
  std::vector<std::unique_ptr<Method>> methods;
  for (const auto& topology : o.topologies) {
    for (const auto& staleness : o.stalenesses) {
      methods.push_back(std::make_unique<Method>(group, o, "awc", topology, staleness));
    }
  }
  methods.push_back(std::make_unique<Method>(group, o, "allreduce", "-", "-"));
  for (int repeat = -1; repeat < report.repeats(); ++repeat) {
    for (const auto& method : methods) {
      method->run(static_cast<std::uint64_t>(repeat + 2), repeat >= 0);
    }
  }
  for (const auto& method : methods) method->add_to(report, methods.back()->median_ms());
  return group.rank() == 0 ? report.finish() : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv,
                  [&](const mpi::Communicator& world) { return run(Group(world), argc, argv); });
}
