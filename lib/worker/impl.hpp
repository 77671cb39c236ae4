// The parts of a Worker, and the order of its round.
#pragma once

#include <fast/worker/worker.hpp>
#include <optional>

#include "exchange/seats/seat_keeper.hpp"
#include "worker/context.hpp"
#include "worker/global_average.hpp"
#include "worker/growth.hpp"
#include "worker/lag.hpp"
#include "worker/mean_model.hpp"
#include "worker/model_reader.hpp"
#include "worker/publisher.hpp"
#include "worker/recovery.hpp"
#include "worker/round.hpp"
#include "worker/round_plan.hpp"
#include "worker/start/place.hpp"
#include "worker/survivors.hpp"
#include "worker/worker_state.hpp"

namespace fast {

/// The parts refer to each other, so it stays in place.
struct Worker::Impl {
  /// Collective. All that has to agree has been checked.
  Impl(const Group& group, const worker::Wiring& wiring, WorkerOptions options,
       worker::Place place);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void begin_round();
  void end_round(const StepOptions& options);
  void check_loss(double loss);
  void republish();
  void set_schedule(const TopologyRule& rule);
  void restore(const std::vector<TensorView>& saved);
  void finish();
  void leave();
  bool abandon() noexcept;

  std::unique_ptr<combine::Mixer> mixer;
  worker::Setting setting;
  std::shared_ptr<worker::RoundPlan> plan;  ///< shared with the exchange's edge plan
  Link link;
  std::shared_ptr<exchange::SeatKeeper> seats;  ///< null without spares
  worker::Progress progress;
  worker::Context context;
  worker::Publisher publisher;
  worker::ModelReader reader;
  worker::Lag lag;
  worker::Round round;
  worker::Recovery recovery;
  std::optional<worker::GlobalAverage> average;  ///< where the rule averages over all workers
  worker::Survivors survivors;
  worker::Growth growth;
  worker::WorkerState state;
  worker::MeanModel mean;
  bool rotates = false;   ///< the weights live in slots (RotatingArena)
  bool replaced = false;  ///< a spare has this worker's seat
  bool left = false;      ///< finished, abandoned, or by leave()
  bool departed = false;  ///< by leave()
  bool seated = true;     ///< false in a spare whose seat was not vacant any more
  bool needed = true;     ///< false in a spare that was to join when training ended

 private:
  void start();
  void vacate() noexcept;
  void sit_down(const exchange::SeatOffer& offer);
  void begin_on_seat(const exchange::SeatOffer& offer);
  void join(const exchange::SeatOffer& offer);
  int come_to(std::int64_t rounds);
  void grow();
  void begin_for_other_weights();
  void rejoin();
  bool keeps_seat();
  void combine(const algorithm::RoundInfo& info);
  void adopt_initial();

  Clock::time_point step_began;
};

}  // namespace fast
