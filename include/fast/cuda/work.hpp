// A device's work for exchanges of payloads that lie in its memory (fast/exchange/staged.hpp).
#pragma once

#include <fast/cuda/stream.hpp>
#include <fast/exchange/staged.hpp>

#include <memory>

namespace fast::cuda {

using fast::DeviceWork;

/// The work of one stream; settle() has that deadline. The stream must outlive it. beside() is that
/// of a new stream.
std::shared_ptr<DeviceWork> work_of(const Stream& stream, Seconds deadline = Seconds(300));

}  // namespace fast::cuda
