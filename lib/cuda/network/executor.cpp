#include "cuda/network/executor.hpp"

#include <algorithm>

#include "cuda/device/runtime.hpp"
#include "cuda/kernels/layer_launch.hpp"

namespace fast::cuda {

void destroy_graph(void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }

Executor::Executor(const Stream& stream, const NetworkOptions& options) : stream_(stream) {
  const bool tf32 = options.precision == Precision::tf32;
  const UseDevice use(stream.device());  // a handle belongs to the current device
  convolutions_.emplace(PlanRules{tf32, options.deterministic}, options.autotune);
  products_.emplace(tf32, options.autotune);
  recurrences_.emplace(tf32);
}

/// Returns the size of the workspace in bytes.
std::size_t Executor::prepare(const Work& work) {
  if (const auto* convolution = std::get_if<Convolution>(&work))
    return convolutions_->workspace_bytes(*convolution);
  if (const auto* product = std::get_if<MatrixProduct>(&work))
    return products_->workspace_bytes(*product);
  if (const auto* recurrence = std::get_if<Recurrence>(&work))
    return recurrences_->prepare(*recurrence);
  return 0;
}

void Executor::prepare(std::span<const Work> works) {
  const UseDevice use(stream_.device());
  std::size_t most = 0;
  for (const Work& work : works) most = std::max(most, prepare(work));
  if (most <= workspace_.size_bytes()) return;
  workspace_ = DeviceBuffer(most, stream_.device());
  ++version_;
}

void Executor::run(std::span<const Work> works) {
  const UseDevice use(stream_.device());
  const auto stream = static_cast<cudaStream_t>(stream_.handle());
  for (const Work& work : works) {
    if (const auto* convolution = std::get_if<Convolution>(&work))
      convolutions_->run(*convolution, workspace_.data(), stream);
    else if (const auto* product = std::get_if<MatrixProduct>(&work))
      products_->run(*product, workspace_.data(), stream);
    else if (const auto* recurrence = std::get_if<Recurrence>(&work))
      recurrences_->run(*recurrence, workspace_.data(), stream);
    else
      check(cuda::launch(work, stream), "a layer's kernel");
  }
}

Graph Executor::capture(const std::function<void()>& enqueue) {
  const UseDevice use(stream_.device());
  const auto stream = static_cast<cudaStream_t>(stream_.handle());
  struct Destroy {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy> captured;
  const auto end = [&] {
    cudaGraph_t made = nullptr;
    const cudaError_t code = cudaStreamEndCapture(stream, &made);
    captured.reset(made);
    return code;
  };
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  try {
    enqueue();
  } catch (...) {
    end();
    cudaGetLastError();  // clear it: the first failure says more
    throw;
  }
  check(end(), "capturing a pass (leave graphs off where a library refuses it)");
  cudaGraphExec_t made = nullptr;
  check(cudaGraphInstantiate(&made, captured.get(), 0), "making a graph of a pass");
  return Graph(made);
}

void Executor::launch(const Graph& graph) {
  const UseDevice use(stream_.device());
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.get()),
                        static_cast<cudaStream_t>(stream_.handle())),
        "launching a pass");
}

}  // namespace fast::cuda
