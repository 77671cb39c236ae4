#include <fmt/core.h>

#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>
#include <fast/nn/cuda/backend.hpp>

#include "backends/backends.hpp"

namespace backends {

using namespace fast;

OnDevice make_cuda(const nn::ModelSpec& spec, std::uint64_t seed, const nn::BackendOptions& options,
                   const CudaPlace& place) {
  const cuda::Inventory found = cuda::inventory();
  require(!found.devices.empty(), ErrorKind::resource, "--device cuda: {} (--device cpu)",
          found.why_none);
  const auto count = static_cast<int>(found.devices.size());
  const cuda::DeviceInfo device =
      cuda::device(place.gpu.value_or(cuda::device_in_turn(place.rank, place.hosts, count)));
  std::shared_ptr<cuda::BatchStage> stage;
  if (place.staged) stage = std::make_shared<cuda::BatchStage>(device.index);
  const cuda::NetworkOptions network{device.index,
                                     cuda::precision_from(place.precision),
                                     place.autotune,
                                     place.graph,
                                     place.deterministic,
                                     stage,
                                     place.rank == 0 ? place.log : LogSink()};
  return {cuda::make_backend(spec, seed, options, network),
          fmt::format("cuda:{} ({})", device.index, device.name), stage};
}

}  // namespace backends
