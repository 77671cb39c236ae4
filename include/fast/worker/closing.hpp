// Closing consensus rounds: when training is over, the workers average a few times more without
// steps between, so that every replica comes close to the mean model.
#pragma once

#include <fast/mixing/spectrum.hpp>
#include <fast/worker/worker.hpp>

#include <cstdint>

namespace fast {

/// Rounds after which the workers' disagreement is a twentieth of what it was, from the gap: whole
/// periods, most_closing_rounds at most; Spectrum::exact_after where that is known; 4 ceil(log2 N)
/// on a schedule that never repeats; 0 when averaging does not bring the workers together.
std::int64_t closing_rounds(const Schedule& schedule, const Spectrum& spectrum);
inline constexpr std::int64_t most_closing_rounds = 100;

/// Collective, to be called when all workers have finished training and their Worker is gone:
/// averages `parameters` in place, synchronously, whatever staleness and algorithm they were
/// trained with; by push-sum where the weights do not keep the mean, as `spectrum`, that of the
/// rule's schedule with those weights, has it. Of `options` weights,
/// deadlines, participates, log and must_agree count. Returns the Worker that did it, finished: its
/// mean_model() is exact.
Worker close_training(const Group& group, const TopologyRule& rule, const Spectrum& spectrum,
                      std::vector<TensorView> parameters, std::int64_t rounds,
                      WorkerOptions options = {});

}  // namespace fast
