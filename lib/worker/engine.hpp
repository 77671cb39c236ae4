// A worker's rounds: ties parameters, schedule, exchange and algorithm.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/worker/worker.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "combine/mixer.hpp"
#include "worker/census.hpp"
#include "worker/global_average.hpp"
#include "worker/model_reader.hpp"
#include "worker/presence.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

/// The round of publications that are nobody's message.
inline constexpr std::int64_t no_round = -1;

/// True when combination `round` is an exact average over all workers.
inline bool averages_all(const algorithm::Declaration& declared, std::int64_t round) {
  return declared.average_every > 0 && (round + 1) % declared.average_every == 0;
}

/// True when neighbors read each other for combination `round`.
inline bool talks_in(const algorithm::Declaration& declared, std::int64_t round) {
  return declared.scope == algorithm::Scope::neighbors && !averages_all(declared, round);
}

class Engine {
 public:
  /// Collective. All that has to agree has been checked.
  Engine(Group group, Schedule schedule, ParameterLayout layout, WorkerOptions options);

  const Group& group() const { return group_; }
  const Schedule& schedule() const { return plan_->schedule(); }
  const ParameterLayout& layout() const { return mixer_->layout(); }
  const algorithm::Declaration& declaration() const { return declared_; }
  std::int64_t round() const { return stats_.rounds; }
  WorkerStats stats() const { return stats_; }

  void begin_round();
  void end_round(const StepOptions& options);
  /// Throws Error(argument) where the weights cannot live in slots.
  void require_rotating(DType dtype) const;
  /// The end of a round of weights that live in slots.
  void end_round(combine::AnyPartUpdate update);
  const std::byte* weights() const { return link_.exchange->published().data; }
  void mean_model(std::span<std::byte> packed) const;
  void mean_model(const std::vector<TensorView>& out) const;
  double consensus_distance() const;
  void republish();
  void rebind(std::vector<TensorView> parameters);
  void set_schedule(const TopologyRule& rule);
  std::vector<TensorView> state();
  void restore(const std::vector<TensorView>& saved);
  void finish();
  void await_finish();
  bool has_finished(int worker) const {
    return link_.peers->peer(worker).status == WorkerStatus::finished;
  }
  bool abandon() noexcept;
  const std::vector<int>& lost() const { return lost_; }
  /// The step's outcome was not finite: true when it will be left out, at the end of the round.
  bool will_heal() { return ill_ = options_.not_finite == NotFinite::heal; }

 private:
  void take_census();
  /// False when the round cannot be made, as the others have gone on without this worker.
  bool keeps_up(const std::vector<Arrival>& arrivals);
  bool was_stopped();
  std::int64_t furthest_neighbor() const;
  void rejoin();
  void heal();
  bool adopt_neighbors(std::int64_t least_progress);
  bool before_step() const {
    return declared_.publish_point == algorithm::PublishPoint::before_step;
  }
  /// Workers pass on shares of what they have, instead of averaging what all keep.
  bool passes_mass() const { return declared_.mixing == algorithm::Mixing::column_stochastic; }
  bool combines_next() const {
    return (stats_.rounds + 1) % (options_.mix_every * declared_.combine_every) == 0;
  }
  /// The next publication is written in the pass that combines.
  bool fused() const { return before_step() && !declared_.surveys; }
  ExchangeOptions exchange_options() const;
  Link open_link();
  bool weights_are_finite();
  const std::byte* published_message();
  void adopt_initial();
  void publish_current(const algorithm::RoundInfo& info);
  void publish_weights();
  void publish_first(std::int64_t round);
  void average_exactly(const algorithm::RoundInfo& info);
  void combine_neighbors(const algorithm::RoundInfo& info);
  void combine_everybody(const algorithm::RoundInfo& info);
  double epoch_after(const std::vector<Arrival>& arrivals, const RoundPlan::Round& round);
  bool note_presence(const std::vector<Arrival>& arrivals, const RoundEdges& edges);
  double kept_shares(const RoundPlan::Round& round) const;
  combine::Neighborhood neighborhood(const std::vector<Arrival>& arrivals,
                                     const RoundPlan::Round& round) const;
  bool mixes_early() const;
  bool mix_as_they_arrive(std::vector<Arrival>& arrivals, const MixingRow& row);
  template <class T>
  bool average_as_they_arrive(const Segment& segment, std::vector<Arrival>& arrivals,
                              const MixingRow& row, const MutablePayload& next);
  bool mix_whole(std::vector<Arrival> arrivals, const RoundPlan::Round& round,
                 const algorithm::RoundInfo& info);
  bool mix_exactly(const std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
                   const algorithm::RoundInfo& info);
  void mix_optimistically(std::vector<Arrival> arrivals, const RoundPlan::Round& round,
                          const algorithm::RoundInfo& info);
  std::vector<int> own_part() const;
  void count(const std::vector<Arrival>& arrivals, const MixingRow& row);
  void count_sent(bool sent, std::size_t readers);
  void restore_exactly(const std::vector<TensorView>& saved);

  Group group_;
  WorkerOptions options_;
  std::shared_ptr<algorithm::Algorithm> algorithm_;
  algorithm::Declaration declared_;
  std::unique_ptr<combine::Mixer> mixer_;
  std::shared_ptr<RoundPlan> plan_;  ///< shared with the exchange's edge plan
  Presence presence_;                ///< kept for rules that remember their neighbors
  PayloadShape shape_;
  Link link_;
  std::optional<ModelReader> reader_;
  std::optional<GlobalAverage> average_;  ///< where the rule averages over all workers
  AlignedBuffer message_;                 ///< image of a message on a device, for checkpoints
  std::int64_t combinations_ = 0;
  bool sent_ = true;                        ///< the latest publication was a new one
  std::array<std::int64_t, 3> counters_{};  ///< rounds, combinations_, sent_: as state() shows them
  Clock::time_point step_began_;
  bool rotates_ = false;  ///< the weights live in slots
  bool left_ = false;     ///< finished or abandoned
  bool ill_ = false;      ///< the step's loss was not finite
  std::optional<Census> census_;
  Clock::time_point round_ended_ = Clock::now();
  std::uint64_t beats_ = 0;  ///< of this worker's own heart when the last round ended
  std::vector<int> lost_;
  WorkerStats stats_;
};

}  // namespace fast::worker
