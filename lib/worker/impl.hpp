// The parts of a Worker, and the order of its round.
#pragma once

#include <fast/worker/worker.hpp>
#include <optional>

#include "worker/context.hpp"
#include "worker/lag_detector.hpp"
#include "worker/mean_model.hpp"
#include "worker/membership_view.hpp"
#include "worker/model_reader.hpp"
#include "worker/participation.hpp"
#include "worker/publisher.hpp"
#include "worker/recovery.hpp"
#include "worker/round.hpp"
#include "worker/round_plan.hpp"
#include "worker/start/link_builder.hpp"
#include "worker/start/startup_config.hpp"
#include "worker/start/worker_start.hpp"
#include "worker/worker_state.hpp"

namespace fast {

/// The parts refer to each other, so it stays in place.
struct Worker::Impl {
  /// Collective. All that has to agree has been checked.
  Impl(const Group& group, const worker::StartupConfig& agreed, worker::WorkerParts ready);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  /// The same, with the wait of a spare, which tries one seat after the other. Null in a spare that
  /// was not needed.
  static std::unique_ptr<Impl> make(const Group& group, const worker::StartupConfig& agreed);

  void begin_round();
  void end_round(const StepOptions& options);
  void check_loss(double loss);
  void republish();
  void set_schedule(const TopologyRule& rule);
  void restore(const std::vector<TensorView>& saved);
  void finish();
  /// Throws Error(argument) after finish(), and after a failure.
  void require_in_training(std::string_view call) const;
  /// See MembershipView::own_part().
  std::vector<int> own_part() const { return survivors.own_part(participation.has_ended()); }

  std::unique_ptr<combine::Mixer> mixer;
  worker::WorkerConfig setting;
  worker::TopologyConfig wiring;            ///< as the program has asked at the start
  std::shared_ptr<worker::RoundPlan> plan;  ///< shared with the exchange's edge plan
  Link link;
  std::shared_ptr<worker::RoundEvents> events;  ///< of `link`; null: nobody observes
  worker::Progress progress;
  worker::Context context;
  worker::Publisher publisher;
  worker::ModelReader reader;
  worker::LagDetector lag;
  worker::Round round;
  worker::Recovery recovery;
  std::optional<worker::GlobalAverage> average;  ///< where the rule averages over all workers
  worker::MembershipView survivors;
  worker::Growth growth;
  worker::WorkerState state;
  worker::MeanModel mean;
  worker::Reduction reduction;
  worker::Participation participation;
  worker::Entered entered = worker::Entered::trains;
  bool rotates = false;   ///< the weights live in slots (RotatingArena)
  AlignedBuffer watched;  ///< the latest mean of WorkerOptions::on_mean

 private:
  static std::unique_ptr<Impl> try_seats(const Group& group, const worker::StartupConfig& agreed,
                                         worker::LinkBuilder& builder,
                                         std::optional<worker::WorkerParts> ready);
  void open_average();
  void join_sites();
  void exchange_with_sites();
  void take_part_anew();
  void publish_anew();
  void enter(const std::optional<membership::SeatOffer>& offer);
  void note_round();
  void hand_back(const StepOptions& options);
  void grow();
  void reset_rule_state();
  void count_republished();
  void rejoin();
  void combine(const algorithm::RoundInfo& info);
  /// All combinations of a round.
  void combine_in(algorithm::RoundInfo info);
  void watch_mean();

  std::optional<Clock::time_point> step_began;  ///< none: end_round() is called alone
};

}  // namespace fast
