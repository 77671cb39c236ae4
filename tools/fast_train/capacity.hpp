// Whether a run's numbers fit this host, found out before anything is allocated.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/nn/model_spec.hpp>

#include <cstddef>
#include <string>

#include "fast_train/options.hpp"

namespace fast_train {

/// The least that a worker takes on the host: weights, gradients, the optimizer's state, slots, the
/// outputs of the layers and batches. An estimate from below: what fits by it may still be too
/// much.
double least_bytes_of_worker(const Options& o, const fast::nn::ModelSpec& spec);

/// Throws Error(resource) when the `workers` of this host need more memory than it has available,
/// or more threads than this process can start, with these numbers.
void check_capacity(const Options& o, const fast::nn::ModelSpec& spec, int workers);

/// Samples that each of `workers` has of a round of all `samples`.
std::size_t largest_batch(const Options& o, std::size_t samples, int workers);

/// A batch size that was not given: at most as many samples as each of `workers` has of a round.
/// Returns what is to be said of that; empty: nothing has changed.
std::string fit_batch(Options& o, const fast::data::Dataset& train, int workers);

/// Throws Error(argument) on numbers that make no sense with so many training samples.
void check_counts(const Options& o, std::size_t samples);

}  // namespace fast_train
