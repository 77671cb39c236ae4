#include "worker/engine.hpp"

#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>
#include <numeric>
#include <thread>

#include "worker/startup.hpp"

namespace fast::worker {
namespace {

constexpr int most_passes = 3;

/// Adds the time until its end to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += Seconds(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  Clock::time_point start_ = Clock::now();
};

bool present(const Arrival& arrival) { return arrival.state == Arrival::State::present; }

}  // namespace

Engine::Engine(Group group, Schedule schedule, ParameterLayout layout, WorkerOptions options)
    : group_(std::move(group)),
      options_(std::move(options)),
      algorithm_(options_.algorithm),
      declared_(algorithm_->declaration()),
      mixer_(std::move(layout), algorithm_),
      plan_(std::make_shared<RoundPlan>(std::move(schedule), group_.rank(), options_.weights,
                                        options_.lazy_weights)) {
  const PayloadShape shape{mixer_.layout().size_bytes(), declared_.payload_vectors, 0};
  const bool talks = declared_.scope == algorithm::Scope::neighbors;
  const EdgePlan edges = [plan = plan_, talks](std::int64_t round) {
    return talks ? plan->at(round)->edges : RoundEdges{};
  };
  link_ = group_.open(shape, edges, exchange_options());
  if (declared_.scope == algorithm::Scope::everybody) {
    reducer_ = group_.open_reducer(shape.vector_bytes, exchange_options());
    reduced_ = AlignedBuffer(shape.vector_bytes);
  }
  if (options_.initial == Initial::broadcast) adopt_initial();
  mixer_.start();
  publish_current(before_step() ? 0 : -1);
  link_.peers->announce(WorkerStatus::running);
  group_.barrier(Deadline(options_.deadline), "Worker: first publication");
}

ExchangeOptions Engine::exchange_options() const {
  ExchangeOptions exchange;
  exchange.staleness = options_.staleness;
  exchange.deadline = options_.deadline;
  exchange.suspect_after = options_.suspect_after;
  exchange.log = options_.log;
  return exchange;
}

void Engine::adopt_initial() {
  if (group_.rank() == 0) publish_current(-1);
  group_.barrier(Deadline(options_.deadline), "Worker: adopting worker 0's weights");
  if (group_.rank() != 0) {
    const AlignedBuffer packed(layout().size_bytes());
    require(link_.peers->snapshot(0, {packed.data(), packed.size_bytes()}), ErrorKind::internal,
            "Worker: worker 0's initial weights could not be read");
    layout().scatter(packed.data());
  }
  group_.barrier(Deadline(options_.deadline), "Worker: adopting worker 0's weights");
}

void Engine::publish_current(std::int64_t round) {
  const Stopwatch watch(stats_.publish_s);
  const MutablePayload next = link_.exchange->acquire();
  mixer_.publish(next, {round, 0});
  link_.exchange->publish(round);
}

void Engine::begin_round() {
  require(!left_, ErrorKind::argument, "Worker: begin_round after finish()");
  step_began_ = Clock::now();
}

void Engine::end_round(const StepOptions& options) {
  stats_.step_s += Seconds(Clock::now() - step_began_).count();
  const algorithm::RoundInfo info{combinations_, options.learning_rate};
  const bool due = (stats_.rounds + 1) % options_.mix_every == 0;
  if (due && declared_.scope == algorithm::Scope::neighbors) combine_neighbors(info);
  if (due && declared_.scope == algorithm::Scope::everybody) combine_everybody(info);
  if (due) ++combinations_;
  ++stats_.rounds;
  if (options_.on_round) options_.on_round(stats_.rounds);
}

void Engine::combine_neighbors(const algorithm::RoundInfo& info) {
  if (!before_step()) publish_current(info.round);
  const auto round = plan_->at(info.round);
  std::vector<Arrival> arrivals;
  {
    const Stopwatch watch(stats_.wait_s);
    arrivals = link_.exchange->fetch(info.round);
  }
  if (options_.staleness == 0) {
    mix_exactly(arrivals, round->row, info);
  } else {
    mix_optimistically(std::move(arrivals), round->row, info);
  }
  link_.exchange->complete(info.round + 1);
  if (before_step()) link_.exchange->publish(info.round + 1);
  stats_.bytes_sent += static_cast<double>(round->edges.destinations.size()) *
                       static_cast<double>(static_cast<std::size_t>(declared_.payload_vectors) *
                                           layout().size_bytes());
}

algorithm::Neighborhood Engine::neighborhood(const std::vector<Arrival>& arrivals,
                                             const MixingRow& row) const {
  algorithm::Neighborhood near{link_.exchange->published(), {}, {}};
  for (std::size_t k = 0; k < arrivals.size(); ++k) {
    if (!present(arrivals[k])) continue;
    near.payloads.push_back(arrivals[k].payload);
    near.weights.push_back(row.weights[k]);
  }
  return near;
}

void Engine::mix_exactly(const std::vector<Arrival>& arrivals, const MixingRow& row,
                         const algorithm::RoundInfo& info) {
  MutablePayload next;
  if (before_step()) {
    const Stopwatch watch(stats_.wait_s);
    next = link_.exchange->acquire();
  }
  {
    const Stopwatch watch(stats_.mix_s);
    mixer_.combine(neighborhood(arrivals, row), info, before_step() ? &next : nullptr);
  }
  for (const Arrival& arrival : arrivals) {
    require(
        !present(arrival) || link_.exchange->stands(arrival), ErrorKind::internal,
        "Worker: worker {} overwrote what worker {} was reading in round {}, against the protocol",
        arrival.worker, group_.rank(), info.round);
  }
  count(arrivals, row);
}

void Engine::mix_optimistically(std::vector<Arrival> arrivals, const MixingRow& row,
                                const algorithm::RoundInfo& info) {
  for (int pass = 1;; ++pass) {
    std::vector<int> torn;
    {
      const Stopwatch watch(stats_.mix_s);
      mixer_.gather(neighborhood(arrivals, row));
    }
    for (std::size_t k = 0; k < arrivals.size(); ++k) {
      if (present(arrivals[k]) && !link_.exchange->stands(arrivals[k])) {
        torn.push_back(static_cast<int>(k));
      }
    }
    if (torn.empty()) break;
    ++stats_.rejected;
    std::vector<Arrival> again;
    if (pass < most_passes) again = link_.exchange->fetch(info.round);
    for (const int k : torn) {
      Arrival& arrival = arrivals[static_cast<std::size_t>(k)];
      if (pass < most_passes) {
        arrival = again[static_cast<std::size_t>(k)];
      } else {
        arrival.state = Arrival::State::torn;
      }
    }
  }
  const MutablePayload next = before_step() ? link_.exchange->acquire() : MutablePayload{};
  {
    const Stopwatch watch(stats_.mix_s);
    mixer_.combine_gathered(link_.exchange->published(), info, before_step() ? &next : nullptr);
  }
  count(arrivals, row);
}

void Engine::count(const std::vector<Arrival>& arrivals, const MixingRow& row) {
  for (std::size_t k = 0; k < arrivals.size(); ++k) {
    const Arrival& arrival = arrivals[k];
    if (!present(arrival)) {
      ++stats_.skipped;
      stats_.mean_drift_weight += row.weights[k];
      if (arrival.state == Arrival::State::suspect && options_.on_suspect) {
        options_.on_suspect(arrival.worker);
      }
      continue;
    }
    ++stats_.reads;
    if (arrival.fresh) ++stats_.fresh_reads;
    const std::int64_t age = std::max<std::int64_t>(0, combinations_ - arrival.round);
    const auto last = static_cast<std::int64_t>(stats_.ages.size()) - 1;
    ++stats_.ages[static_cast<std::size_t>(std::min(age, last))];
  }
}

void Engine::combine_everybody(const algorithm::RoundInfo& info) {
  const Payload own = link_.exchange->published();
  {
    const Stopwatch watch(stats_.publish_s);
    layout().gather(reduced_.data());
  }
  const auto each_group = [&](const auto& apply) {
    for (const Segment& segment : layout().segments()) apply(segment);
  };
  {
    const Stopwatch watch(stats_.wait_s);
    each_group([&](const Segment& segment) {
      std::byte* values = reduced_.data() + segment.offset_bytes;
      const std::byte* base = own.data + segment.offset_bytes;
      const auto average = [&]<class T>(T) {
        const std::span<T> delta(reinterpret_cast<T*>(values), segment.element_count);
        const T* from = reinterpret_cast<const T*>(base);
        for (std::size_t e = 0; e < delta.size(); ++e) delta[e] -= from[e];
        reducer_->average(delta);
      };
      if (segment.dtype == DType::f64) {
        average(double{});
      } else {
        require(segment.dtype == DType::f32, ErrorKind::argument,
                "allreduce: element type {}; f32 and f64 are supported", name(segment.dtype));
        average(float{});
      }
    });
  }
  {
    const Stopwatch watch(stats_.mix_s);
    mixer_.combine_with_pull(own, {reduced_.data(), nullptr, 0}, info);
  }
  publish_current(info.round + 1);
  link_.exchange->complete(info.round + 1);
  stats_.bytes_sent +=
      2.0 * static_cast<double>(layout().size_bytes()) * (group_.size() - 1) / group_.size();
}

void Engine::republish() {
  publish_current(before_step() ? combinations_ : combinations_ - 1);
  if (options_.staleness == 0) group_.barrier(Deadline(options_.deadline), "Worker: republish");
}

void Engine::rebind(std::vector<TensorView> parameters) {
  mixer_.rebind(layout().rebound(worker::participating(std::move(parameters), options_)));
}

void Engine::set_schedule(const TopologyRule& rule) {
  plan_->change(rule.make(group_.size()), combinations_);
}

void Engine::finish() {
  if (left_) return;
  // The final weights may differ from the last publication (after-step rules, steps since the last
  // combination).
  const MutablePayload next = link_.exchange->acquire();
  layout().gather(next.data);
  link_.exchange->publish(combinations_);
  link_.peers->announce(WorkerStatus::finished);
  left_ = true;
}

void Engine::await_finish() {
  finish();
  const Deadline deadline(options_.deadline);
  for (int worker = 0; worker < group_.size(); ++worker) {
    std::uint64_t heartbeat = 0;
    double moved_at_s = deadline.elapsed_s();
    for (;;) {
      const PeerState peer = link_.peers->peer(worker);
      if (peer.status == WorkerStatus::finished) break;
      require(peer.status != WorkerStatus::failed, ErrorKind::peer_failed,
              "Worker: worker {} stops because worker {} failed", group_.rank(), worker);
      if (peer.heartbeat != heartbeat) {
        heartbeat = peer.heartbeat;
        moved_at_s = deadline.elapsed_s();
      }
      if (deadline.elapsed_s() - moved_at_s > options_.suspect_after.count()) break;
      require(!deadline.expired(), ErrorKind::deadline,
              "Worker: worker {} has finished and waited {:.1f} s for worker {}, which has "
              "finished {} rounds; "
              "allow more with a longer deadline",
              group_.rank(), deadline.elapsed_s(), worker, peer.progress);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

bool Engine::abandon() noexcept {
  if (left_) return false;
  left_ = true;
  return link_.peers->announce(WorkerStatus::failed);
}

}  // namespace fast::worker
