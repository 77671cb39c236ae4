// Tensors of a model that take part in no round. Those that the program lists as frozen become
// equal on all workers, or must be. Others may differ: the log names those that do.
#pragma once

#include <fast/worker/worker.hpp>

#include <vector>

namespace fast::worker {

/// Throws Error(argument) if a tensor of WorkerOptions::frozen cannot be read here, or is one of
/// `layout`, whose tensors take part.
void check_frozen(const WorkerOptions& options, const ParameterLayout& layout);

/// Those of `parameters` that neither take part nor are listed as frozen.
std::vector<TensorView> left_out(const std::vector<TensorView>& parameters,
                                 const WorkerOptions& options);

/// Collective, spares included. Compares the tensors of all ranks by hashes of their bytes. As
/// WorkerOptions::frozen says of frozen ones. Worker 0 logs one warning that names those of
/// `left_out` that differ.
void compare_unexchanged(const Group& everyone, const WorkerOptions& options,
                         const std::vector<TensorView>& left_out);

}  // namespace fast::worker
