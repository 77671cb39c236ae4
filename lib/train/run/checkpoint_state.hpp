// What a run saves, and what it continues from.
#pragma once

#include <vector>

#include "train/balance/balancer.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/run/evaluation.hpp"
#include "train/run/replica.hpp"
#include "train/run/training_cursor.hpp"

namespace fast::train {

/// The model, the optimizer, the state of the averaging rule, the moving average, the best model so
/// far, the position, and the shares of the workers.
class RunState {
 public:
  RunState(Replica& replica, BestModel& best, TrainingCursor& position, Balancer& balancer)
      : replica_(replica), best_(best), position_(position), balancer_(balancer) {}

  TrainingCursor& position() const { return position_; }
  bool keeps_best() const { return best_.is_keeper(); }
  /// On worker 0, of the schedule plateau.
  std::int64_t wanted_reductions() const { return best_.reductions(); }
  /// Collective: whether the run has come to its end by its patience.
  bool agree_on_end() { return best_.agree_on_end(position_.epoch() - 1); }
  /// The place in the data, and the shares, of a checkpoint's file.
  void take_place(const Metadata& metadata);

  /// Views of everything that a checkpoint holds, with the weights as they are now.
  std::vector<TensorView> tensors();
  Metadata metadata() const;

  /// Model, optimizer and place from a worker's file.
  void read(const Safetensors& own);
  /// The rest: moving average, best model, and the rule's state (collective). The best model is in
  /// worker 0's file; if that has one of another model, there is none, and Error(data) is thrown.
  void read_average_so_far(const Safetensors& own);
  void read_best(const Safetensors& first);
  void restore_rule(const Safetensors& own);
  /// Model and optimizer as the average of some workers' files. Throws as average_shards() does.
  void read_average(const Manifest& manifest, const std::vector<int>& workers, const LogSink& log);

 private:
  Replica& replica_;
  BestModel& best_;
  TrainingCursor& position_;
  Balancer& balancer_;
};

}  // namespace fast::train
