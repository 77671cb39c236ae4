// Closing consensus rounds: when training is over, the workers average a few times more without
// steps between, so that every replica comes close to the mean model.
#pragma once

#include <fast/mixing/weights.hpp>
#include <fast/worker/worker.hpp>

#include <cstdint>
#include <functional>

namespace fast {

/// Rounds after which the workers' disagreement is a twentieth of what it was, from the gap: whole
/// periods, most_closing_rounds at most; Spectrum::exact_after where that is known; 4 ceil(log2 N)
/// on a schedule that never repeats; 0 when averaging does not bring the workers together.
std::int64_t closing_rounds(const Schedule& schedule, const Spectrum& spectrum);
inline constexpr std::int64_t most_closing_rounds = 100;

/// Collective, when all workers have finished training. Makes the Worker of closing rounds, which
/// averages `parameters` in place, synchronously, whatever staleness and algorithm they were
/// trained with; by push-sum where the weights do not keep the mean, as `spectrum`, that of the
/// rule's schedule with those weights, has it. The weights, deadlines, participates, robust, log
/// and must_agree of `options` count; robust averages are by awc alone.
Worker closing_worker(const Group& group, const TopologyRule& rule, const Spectrum& spectrum,
                      std::vector<TensorView> parameters, WorkerOptions options = {});

/// Closing rounds of such a Worker, and its end: then its mean_model() is exact. Ends before its
/// next round when stop() is true; the others go on without it. Returns how many rounds it made.
std::int64_t close_training(Worker& worker, std::int64_t rounds,
                            const std::function<bool()>& stop = {});

/// Both. Returns the Worker.
Worker close_training(const Group& group, const TopologyRule& rule, const Spectrum& spectrum,
                      std::vector<TensorView> parameters, std::int64_t rounds,
                      WorkerOptions options = {});

}  // namespace fast
