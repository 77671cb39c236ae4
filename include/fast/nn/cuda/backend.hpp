// The backend of networks on a device, for the Trainer.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/nn/backend.hpp>
#include <fast/nn/cuda/network.hpp>

#include <cstdint>
#include <memory>

namespace fast::cuda {

/// A Network with an Optimizer<float> and the initial weights of nn. name() is "cuda".
///
/// Views are of pinned host memory that mirrors the device. Weights are uploaded before every call
/// and downloaded after training, so that any Worker can exchange them, also with workers on CPUs.
/// The backend is a DeviceReplica: where possible, the Trainer averages on the device, without the
/// mirror.
///
/// Hooks and clipping see gradients on the host. optimizer_state() gives the state at that call,
/// and values written there before the next train() take effect. options.threads has no effect.
/// Throws as Network, Optimizer and nn::make_backend do.
std::unique_ptr<Backend> make_backend(nn::ModelSpec spec, std::uint64_t seed,
                                      nn::BackendOptions options = {}, NetworkOptions network = {});

}  // namespace fast::cuda
