// Runs the works of a program on a device.
#pragma once

#include <fast/cuda/memory.hpp>
#include <fast/cuda/network.hpp>
#include <fast/cuda/stream.hpp>
#include <functional>
#include <optional>
#include <span>

#include "cuda/network/convolution.hpp"
#include "cuda/network/matrix_product.hpp"
#include "cuda/network/recurrence.hpp"

namespace fast::cuda {

void destroy_graph(void* graph);
/// Captured works, ready to be launched.
using Graph = Handle<destroy_graph>;

/// Runs on one stream. Not thread-safe.
class Executor {
 public:
  Executor(const Stream& stream, const NetworkOptions& options);

  /// Chooses plans and algorithms and allocates the largest workspace, so that run() only enqueues.
  /// May overwrite the results of the works.
  void prepare(std::span<const Work> works);
  void run(std::span<const Work> works);

  /// Captures the work that enqueue() puts on the stream, such as run(), without running it. The
  /// same work must have run before.
  Graph capture(const std::function<void()>& enqueue);
  void launch(const Graph& graph);
  /// Changes when memory that graphs refer to has moved.
  std::uint64_t version() const { return version_ + recurrences_->version(); }

 private:
  std::size_t prepare(const Work& work);

  const Stream& stream_;
  std::optional<Convolutions> convolutions_;
  std::optional<MatrixProducts> products_;
  std::optional<Recurrences> recurrences_;
  DeviceBuffer workspace_;
  std::uint64_t version_ = 0;
};

}  // namespace fast::cuda
