// How a run continues from a checkpoint of as many workers, or of another number.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "membership/records.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/run/checkpoint_state.hpp"
#include "train/run/training_cursor.hpp"
#include "train/run/training_setup.hpp"

namespace fast::train {

// Where a run on a stream begins.

/// Collective. With the first sample of the stream; of a run that resumes, with the sample after
/// those of the checkpoint, or the first one after it that the stream still has. All workers take
/// worker 0's place. Throws Error(data) when the stream does not reach that place.
void begin_stream(const RunPlan& plan, const TrainingCursor& position, data::StreamOrder& order);

/// Worker `rank` of `workers` takes these workers' files: a group of them, or one that several
/// take.
std::vector<int> sources_of(const Manifest& manifest, int rank, int workers);

/// From what a run continues. Found once, before training: while it goes on, newer checkpoints
/// appear and this one may be removed.
struct ResumePoint {
  Manifest manifest;
  std::optional<Safetensors> own;  ///< empty: missing, broken, or of another number of workers
  bool exact = false;              ///< see Resume
  /// Of spares, where `exact`: by worker, its place in the data and its Worker's rounds.
  std::vector<Metadata> places;
  Metadata any_place;           ///< of spares, else: of the first file that can be read
  std::int64_t reductions = 0;  ///< of the learning rate, the same on all ranks
};

/// Collective over all ranks. Empty when the options name no checkpoint.
std::optional<ResumePoint> find_resume_point(const RunPlan& plan);

/// When every worker has its file, and at staleness 0 all files are of the same round, the run
/// continues exactly. Otherwise the workers start from their files or, where those are missing,
/// from averages, and the rule begins anew.
class Resume {
 public:
  /// `point` may be empty: then run() does nothing.
  Resume(const RunPlan& plan, std::optional<ResumePoint> point, Replica& replica, RunState& state)
      : plan_(plan), point_(std::move(point)), replica_(replica), state_(state) {}

  /// Collective.
  void run();
  /// Of a spare that has taken its seat: its place in the data is that of the others. In a run that
  /// has grown, the others say in `next` which epoch begins in which round. Not collective.
  void join(const std::optional<membership::NumberedRound>& next = {});

 private:
  void load();
  void load_average();
  void load_average_of_all(bool tells);
  void load_best();

  const RunPlan& plan_;
  std::optional<ResumePoint> point_;
  Replica& replica_;
  RunState& state_;
};

}  // namespace fast::train
