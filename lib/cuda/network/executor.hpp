// Carries out a program's works on a device.
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
/// Works as one, ready to be launched.
using Graph = Handle<destroy_graph>;

/// One stream's; one thread at a time.
class Executor {
 public:
  Executor(const Stream& stream, const NetworkOptions& options);

  /// Chooses plans and algorithms and makes room for the largest workspace, so that run() only
  /// enqueues. Results of the works may be written over.
  void prepare(std::span<const Work> works);
  void run(std::span<const Work> works);

  /// Captures what enqueue() gives the stream, run() among it; nothing is done yet. The same has
  /// been enqueued plainly before.
  Graph capture(const std::function<void()>& enqueue);
  void launch(const Graph& graph);
  /// Moves when memory that graphs name has moved.
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
