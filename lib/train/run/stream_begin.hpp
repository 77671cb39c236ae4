// Where a run on a stream begins.
#pragma once

#include "train/run/run_plan.hpp"
#include "train/run/training_cursor.hpp"

namespace fast::train {

/// Collective. With the first sample of the stream; of a run that resumes, with the sample after
/// those of the checkpoint, or the first one after it that the stream still has. All workers take
/// worker 0's place. Throws Error(data) when the stream does not reach that place.
void begin_stream(const RunPlan& plan, const TrainingCursor& position, data::StreamOrder& order);

}  // namespace fast::train
