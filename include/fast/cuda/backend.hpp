// Networks on a device behind the adapter that the Trainer drives.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/cuda/network.hpp>
#include <fast/nn/backend.hpp>

#include <cstdint>
#include <memory>

namespace fast::cuda {

/// A Network with an Optimizer<float>, from nn's initial weights; name() is "cuda". Views are of
/// pinned host memory that mirrors the device's: weights go up before every call and down after
/// training, so that any Worker exchanges them, beside workers that compute on the CPU too. It is a
/// DeviceReplica: the Trainer averages on the device what can be, without the mirror. Hooks and
/// clipping see gradients on the host. What optimizer_state() gives is as of that call, and
/// what is written there until the next train() counts. options.threads is without effect. Throws
/// as Network and Optimizer do, and as nn::make_backend on options out of range.
std::unique_ptr<Backend> make_backend(nn::ModelSpec spec, std::uint64_t seed,
                                      nn::BackendOptions options = {}, NetworkOptions network = {});

}  // namespace fast::cuda
