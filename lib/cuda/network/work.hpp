// Work of a device for exchanges of payloads in its memory (exchange/device/staged.hpp).
#pragma once

#include <fast/cuda/stream.hpp>

#include <memory>

#include "exchange/device/staged.hpp"

namespace fast::cuda {

using fast::DeviceWork;

/// The work of one stream, which must outlive it. `deadline` is that of settle(). beside() uses a
/// new stream.
std::shared_ptr<DeviceWork> work_of(const Stream& stream, Seconds deadline = Seconds(300));

}  // namespace fast::cuda
