// Carries out a program's works on a device.
#pragma once

#include <fast/cuda/memory.hpp>
#include <fast/cuda/stream.hpp>
#include <optional>
#include <span>

#include "cuda/convolution.hpp"
#include "cuda/matrix_product.hpp"

namespace fast::cuda {

/// One stream's; one thread at a time.
class Executor {
 public:
  Executor(const Stream& stream, bool tf32);

  /// Chooses plans and algorithms and makes room for the largest workspace, so that run() only
  /// enqueues.
  void prepare(std::span<const Work> works);
  void run(std::span<const Work> works);

 private:
  std::size_t workspace_bytes(const Work& work);

  const Stream& stream_;
  std::optional<Convolutions> convolutions_;
  std::optional<MatrixProducts> products_;
  DeviceBuffer workspace_;
};

}  // namespace fast::cuda
