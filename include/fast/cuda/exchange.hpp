// Exchanges of payloads that lie in device memory, behind the interface of fast/exchange: counters,
// waits, suspects and deadlines stay those of the host, the bytes are the device's.
#pragma once

#include <fast/cuda/region.hpp>
#include <fast/cuda/stream.hpp>
#include <fast/exchange/staged.hpp>

#include <cstddef>
#include <memory>

namespace fast::cuda {

using fast::DeviceWork;
using fast::staged_exchange;

/// The work of one stream; settle() has that deadline. The stream must outlive it.
std::shared_ptr<DeviceWork> work_of(const Stream& stream, Seconds deadline = Seconds(300));

/// Slots in memory that neighbors map (share_memory): publishing copies nothing, and a kernel
/// reads neighbors' slots where they are. `control` moves counters and scalars only; open it with
/// control_shape(). Kernels that write or read slots go to the stream of `work`: publish() moves
/// the counter after all of them are done, stands() and complete() look after them. fetch() throws
/// Error(resource) with DeviceRegion::why_not for a source that cannot be mapped.
std::unique_ptr<Exchange> mapped_exchange(std::unique_ptr<Exchange> control, DeviceRegion region,
                                          const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work);
/// Of the region for payloads of that shape.
std::size_t mapped_bytes(const PayloadShape& shape);
PayloadShape control_shape(const PayloadShape& shape);

}  // namespace fast::cuda
