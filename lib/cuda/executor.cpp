#include "cuda/executor.hpp"

#include <algorithm>

#include "cuda/layer_launch.hpp"
#include "cuda/runtime.hpp"

namespace fast::cuda {

Executor::Executor(const Stream& stream, bool tf32) : stream_(stream) {
  const UseDevice use(stream.device());  // handles are of the device they are made on
  convolutions_.emplace(tf32);
  products_.emplace(tf32);
}

std::size_t Executor::workspace_bytes(const Work& work) {
  if (const auto* convolution = std::get_if<Convolution>(&work))
    return convolutions_->workspace_bytes(*convolution);
  if (const auto* product = std::get_if<MatrixProduct>(&work))
    return products_->workspace_bytes(*product);
  return 0;
}

void Executor::prepare(std::span<const Work> works) {
  const UseDevice use(stream_.device());
  std::size_t most = 0;
  for (const Work& work : works) most = std::max(most, workspace_bytes(work));
  if (most > workspace_.size_bytes()) workspace_ = DeviceBuffer(most, stream_.device());
}

void Executor::run(std::span<const Work> works) {
  const UseDevice use(stream_.device());
  const auto stream = static_cast<cudaStream_t>(stream_.handle());
  for (const Work& work : works)
    std::visit(
        [&](const auto& w) {
          using W = std::decay_t<decltype(w)>;
          if constexpr (std::is_same_v<W, Convolution>)
            convolutions_->run(w, workspace_.data(), stream);
          else if constexpr (std::is_same_v<W, MatrixProduct>)
            products_->run(w, workspace_.data(), stream);
          else
            check(launch_each(w, stream), "a layer's kernel");
        },
        work);
}

}  // namespace fast::cuda
