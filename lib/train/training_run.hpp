// One run of the Trainer: trainer.cpp has its course, results.cpp what it measures and reports.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/memory.hpp>
#include <fast/data/prefetcher.hpp>
#include <fast/train/checkpoint.hpp>
#include <fast/train/metrics.hpp>
#include <fast/train/overview.hpp>
#include <fast/train/progress.hpp>
#include <fast/train/trainer.hpp>
#include <fast/worker/device_replica.hpp>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "train/ema.hpp"
#include "train/run_control.hpp"
#include "train/run_places.hpp"

namespace fast::train {

/// What each worker tells the others when all is done.
struct Report {
  double loop_s, wait_s, publish_s, mix_s, bytes;
  double reads, fresh, messages_sent, messages_held, samples, rounds;
  double rejoined, healed;
  double replica_accuracy, mean_model_correct;
};

/// The best mean model so far on the validation samples; worker 0's.
struct Best {
  std::int64_t correct = -1;
  std::int64_t epoch = 0;
  AlignedBuffer packed;
  std::vector<TensorView> state() {
    return {view_of("packed", packed.as<std::uint8_t>()),
            view_of("correct", std::span(&correct, 1)), view_of("epoch", std::span(&epoch, 1))};
  }
};

/// The next round of a run.
struct Position {
  int epoch = 0;
  std::size_t round = 0;  ///< of the epoch
};

/// Where a run goes on that stood before round `round` of an epoch of `of`, in an epoch of
/// `rounds`: the nearest round of it, in [0, rounds).
std::size_t place_in_epoch(std::int64_t round, std::int64_t of, std::size_t rounds);

class Training {
 public:
  Training(const Group& group, const TopologyRule& rule, Backend& backend, const data::Splits& data,
           const TrainerOptions& options);
  ~Training();
  Summary run();

 private:
  std::vector<std::vector<std::size_t>> all_shards() const;
  std::vector<std::size_t> own_samples() const;
  data::Loader make_loader() const;
  std::set<int> gone() const;
  void take_over_samples();
  void take_devices();
  void look_over(const Schedule& schedule);
  void look_for_parts(const Schedule& schedule);
  void choose_device(const WorkerOptions& options);
  WorkerOptions on_device(WorkerOptions options) const;
  std::vector<TensorView> worker_tensors() const;
  ParameterLayout host_layout() const;
  void begin_ema();
  /// Before the host looks at weights that may be on a device, and after it wrote there.
  void download() const;
  void upload() const;
  void clean_optimizer();
  void epoch(int index);
  double train_round(const Batch& batch, double rate);
  template <class T>
  double train_in_slots(const Batch& batch);
  void bring_weights_home();
  double train_one(const Batch& batch);
  void average(const std::vector<TensorView>& gradients);
  void await_pace(Clock::time_point step_began, double reduce_s_before) const;
  void validate(int epoch);
  bool stops(int epoch) const;
  void close();
  void log(int epoch, double loss);
  void write_metrics(std::initializer_list<Metric> line);
  Evaluation evaluate(const data::Dataset& dataset);
  Evaluation evaluate(const AlignedBuffer& model, const data::Dataset& dataset);
  AlignedBuffer mean_model() const;
  AlignedBuffer current_model() const;
  AlignedBuffer final_model() const;
  Report report(const AlignedBuffer& model);
  std::vector<Report> gather(const Report& mine) const;
  std::string adopt(const AlignedBuffer& model);
  Summary summarize();
  bool is_first_left() const;
  void describe_run(Summary& summary) const;
  Summary summarize_alone(AlignedBuffer model);
  Summary leave();
  void give_reason(Summary& summary, std::string unsaved);

  bool saves_checkpoints() const;
  void check_checkpoints() const;
  RunPlaces places() const;
  bool is_first_of_host() const;
  void take_places();
  void open_checkpoints();
  void open_control();
  std::int64_t rounds_ahead() const;
  void advance(std::int64_t rounds_made);
  bool may_go_on();
  void after_round();
  void save_checkpoint(std::int64_t round);
  void resume();
  void load(const Manifest& manifest, const std::optional<Safetensors>& own, bool exact);
  void load_average(const Manifest& manifest, const std::vector<TensorView>& model,
                    const std::vector<TensorView>& optimizer);
  void take_position(const Safetensors& file);

  Group group_;
  Backend& backend_;
  DeviceReplica* device_ = nullptr;  ///< null: weights are averaged in host memory
  const data::Splits& data_;
  TrainerOptions options_;
  data::Dataset train_, validation_;
  Best best_;
  std::optional<Ema> ema_;
  Overview overview_;
  std::optional<Schedule> schedule_;  ///< as laid on the ranks
  std::optional<data::Prefetcher> loader_;
  std::optional<MetricsWriter> metrics_;
  std::optional<Progress> progress_;
  std::optional<RunControl> control_;
  std::optional<Worker> worker_;
  ParameterLayout layout_;  ///< the worker's, in host memory
  std::unique_ptr<Reducer> reducer_;
  WorkerStats stats_;  ///< of training, closing rounds apart
  std::int64_t closing_rounds_ = 0;
  Clock::time_point began_;
  double loop_s_ = 0, reduce_s_ = 0;
  double samples_ = 0;
  // Of checkpoints. Rounds count from the run's first beginning.
  std::optional<CheckpointWriter> checkpoints_;
  Position next_;
  std::int64_t rounds_ = 0, rounds_here_ = 0, last_saved_ = 0;
  std::optional<std::int64_t> resumed_;
  Clock::time_point saved_at_ = Clock::now();
  std::map<int, std::int64_t> missed_;  ///< neighbors that were suspects: the last such round
  std::set<int> taken_from_;            ///< whose samples have been shared out
  std::vector<int> lost_;               ///< workers that died or were silent to the end
  bool warned_of_metrics_ = false;
  bool stopped_ = false;  ///< this worker, before its last round
  bool cut_ = false;      ///< some worker was stopped: the run ends early
};

}  // namespace fast::train
