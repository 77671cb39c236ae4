// All workers of a run at staleness 0 in one thread: the mixers of the library without an exchange.
// A round of a small model takes some microseconds, so that tests can make 100,000 rounds.
#pragma once

#include <fast/topology/topology.hpp>
#include <fast/worker/worker.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "combine/host_mixer.hpp"
#include "core/floating.hpp"
#include "worker/context.hpp"
#include "worker/round_plan.hpp"
#include "worker/start/requirements.hpp"

namespace fast::testing {

template <class T>
class Lockstep {
 public:
  /// Moves the weights of that worker.
  using Step = std::function<void(int worker, std::span<T> x)>;
  /// Whether a message of this round is lost.
  using Loses = std::function<bool(int reader, int source)>;

  /// Each worker begins with `start`. `workers` has the rule and the codec.
  Lockstep(const TopologyRule& topology, int count, const std::vector<T>& start,
           const WorkerOptions& options)
      : traits_(options.algorithm.traits()), count_(count) {
    worker::check_options(options, traits_);
    const Schedule schedule = topology.make(count);
    const FittingWeights weights =
        fitting_weights(schedule, traits_, options.weights, options.lazy_weights);
    for (int i = 0; i < count; ++i) {
      codec::Options codec = options.codec;
      codec.seed = mix_seed(codec.seed, static_cast<std::uint64_t>(i));
      workers_.push_back(std::make_unique<Member>(options, codec, start));
      workers_.back()->plan = std::make_unique<worker::RoundPlan>(
          schedule, i, weights.rule, weights.lazy, traits_.topology.divides(), 0,
          traits_.messages.by_edge ? traits_.messages.vectors : 0);
    }
    for (auto& each : workers_) each->mixer.start(true);
    if (before_step()) publish({});
  }

  void round(const Step& step, double rate) {
    for (int i = 0; i < count_; ++i) step(i, of(i).x);
    if (++rounds_ % traits_.timing.combine_every != 0) return;
    const algorithm::RoundInfo info{
        .round = combinations_, .workers = count_, .learning_rate = rate};
    if (worker::averages_all(traits_, combinations_)) {
      average();
    } else if (traits_.topology.scope == algorithm::Scope::everybody) {
      if constexpr (std::is_floating_point_v<T>) add_mean_step(info);
    } else if (traits_.topology.scope == algorithm::Scope::neighbors) {
      combine(info);
    }
    ++combinations_;
  }

  /// From now on.
  void lose(Loses loses) { loses_ = std::move(loses); }

  const std::vector<T>& x(int worker) const {
    return workers_[static_cast<std::size_t>(worker)]->x;
  }
  std::vector<double> mean() const {
    std::vector<double> mean(x(0).size());
    for (const auto& each : workers_) {
      for (std::size_t e = 0; e < mean.size(); ++e) mean[e] += as_double(each->x[e]) / count_;
    }
    return mean;
  }

 private:
  struct Slot {
    AlignedBuffer vectors, weights;
    std::array<double, algorithm::max_payload_scalars + 1> scalars{};
  };
  struct Member {
    Member(const WorkerOptions& options, const codec::Options& codec, const std::vector<T>& start)
        : x(start),
          mixer(ParameterLayout({view_of("x", std::span(x))}), options.algorithm.make(), codec,
                false, options.mixing_threads) {
      vectors = options.algorithm.traits().messages.vectors;
      stride = round_up(mixer.coded().size_bytes(), cache_line_bytes);
      for (Slot& slot : slots) {
        slot.vectors = AlignedBuffer(static_cast<std::size_t>(vectors) * stride);
        slot.weights = AlignedBuffer(mixer.layout().size_bytes());
      }
    }
    MutablePayload next() { return payload<MutablePayload>(slots[1 - newest]); }
    Payload published() { return payload<Payload>(slots[newest]); }
    void turn() { newest = 1 - newest; }

    template <class Kind>
    Kind payload(Slot& slot) {
      return {slot.vectors.data(), slot.scalars.data(), stride, slot.weights.data()};
    }

    std::vector<T> x;
    combine::HostMixer mixer;
    std::unique_ptr<worker::RoundPlan> plan;
    int vectors = 1;
    std::size_t stride = 0, newest = 0;
    std::array<Slot, 2> slots;
  };

  bool before_step() const {
    return traits_.timing.publish_point == algorithm::PublishPoint::before_step;
  }
  bool fused() const { return before_step() && !traits_.messages.surveys; }
  Member& of(int worker) { return *workers_[static_cast<std::size_t>(worker)]; }

  void publish(const algorithm::RoundInfo& info) {
    for (auto& each : workers_) {
      if (!each->mixer.begin_publish(each->published(), info)) continue;
      each->mixer.publish(each->next(), info);
      each->turn();
    }
  }
  void combine(algorithm::RoundInfo info) {
    if (!before_step()) publish(info);
    for (int i = 0; i < count_; ++i) combine(i, info);
    if (fused()) {
      for (auto& each : workers_) each->turn();
    } else if (before_step()) {
      publish({.round = info.round + 1, .learning_rate = info.learning_rate});
    }
  }
  void combine(int worker, algorithm::RoundInfo info) {
    Member& own = of(worker);
    const auto round = own.plan->at(info.round);
    info.between_sites = round->between_sites;
    info.between_sites_next = own.plan->at(info.round + 1)->between_sites;
    if (traits_.topology.needs_meetings) info.meetings = own.plan->meetings();
    combine::Neighborhood near{own.published(), {}, {}, {}, round->row.self};
    for (std::size_t k = 0; k < round->row.neighbors.size(); ++k) {
      if (loses_ && loses_(worker, round->row.neighbors[k])) continue;
      near.workers.push_back(round->row.neighbors[k]);
      near.payloads.push_back(of(round->row.neighbors[k]).published());
      near.weights.push_back(round->row.weights[k]);
      if (!round->vectors.empty()) near.edges.push_back(round->vectors[k]);
    }
    const MutablePayload next = own.next();
    own.mixer.combine(near, info, fused() ? &next : nullptr);
  }
  void average() {
    const std::vector<double> all = mean();
    for (auto& each : workers_) std::ranges::transform(all, each->x.begin(), from_double<T>);
  }
  /// As exact as T is, in the order of the workers.
  void add_mean_step(const algorithm::RoundInfo& info) {
    std::vector<T> pull(x(0).size());
    for (std::size_t e = 0; e < pull.size(); ++e) {
      T sum{};
      for (auto& each : workers_)
        sum += each->x[e] - reinterpret_cast<const T*>(each->published().data)[e];
      pull[e] = sum / static_cast<T>(count_);
    }
    const Payload given{reinterpret_cast<const std::byte*>(pull.data()), nullptr, 0};
    for (auto& each : workers_) each->mixer.combine_with_pull(each->published(), given, info);
    publish({.round = info.round + 1, .learning_rate = info.learning_rate});
  }

  algorithm::RuleTraits traits_;
  int count_;
  Loses loses_;
  std::vector<std::unique_ptr<Member>> workers_;
  std::int64_t rounds_ = 0, combinations_ = 0;
};

}  // namespace fast::testing
