#include <cmath>
#include <fast/core/error.hpp>
#include <fast/simulation/workload.hpp>

#include "core/registry.hpp"

namespace fast::simulation {
namespace {

constexpr Named<Pattern> patterns[] = {{"neighbors", Pattern::neighbors},
                                       {"ring", Pattern::ring_allreduce},
                                       {"doubling", Pattern::doubling_allreduce},
                                       {"halving", Pattern::halving_allreduce},
                                       {"none", Pattern::nobody}};
constexpr Registry registry{patterns, "exchange: there is no \"{}\"; choose from {}"};

void check_steps(const WorkTimes& work, int workers) {
  require(work.seconds > 0 && std::isfinite(work.seconds), ErrorKind::argument,
          "simulation: steps of {} s; they take time, and end", work.seconds);
  require(work.jitter >= 0 && work.jitter <= 3, ErrorKind::argument,
          "simulation: a jitter of {}; it is from 0 to 3", work.jitter);
  for (const auto& [worker, factor] : work.slow) {
    require(worker >= 0 && worker < workers, ErrorKind::argument,
            "simulation: slow worker {}, but workers are 0 to {}", worker, workers - 1);
    require(factor > 0 && std::isfinite(factor), ErrorKind::argument,
            "simulation: the factor {} of worker {}; it is above 0 and finite", factor, worker);
  }
}

}  // namespace

std::string_view name(Pattern pattern) noexcept {
  for (const auto& [text, known] : patterns) {
    if (known == pattern) return text;
  }
  return "?";
}

Pattern pattern_by_name(std::string_view name) { return registry.at(name).value; }

void check(const Workload& workload) {
  require(workload.staleness >= 0, ErrorKind::argument,
          "simulation: a staleness of {}; it is at least 0", workload.staleness);
  require(workload.payload_bytes >= 0 && workload.payload_bytes <= 1e15, ErrorKind::argument,
          "simulation: messages of {} bytes; they have 0 to 1e15", workload.payload_bytes);
  require(workload.rounds >= 1, ErrorKind::argument, "simulation: {} rounds; at least 1 is needed",
          workload.rounds);
  check_steps(workload.work, workload.schedule.workers());
  const Failures& failures = workload.failures;
  for (const double each :
       {failures.per_worker_hour, failures.absent_s, failures.suspect_after_s}) {
    require(each >= 0 && std::isfinite(each), ErrorKind::argument,
            "simulation: {}; rates and times of failures are at least 0 and finite", each);
  }
}

}  // namespace fast::simulation
