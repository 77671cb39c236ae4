// The backends of fast-train: each has a row in its file, whose name stands here and in names.cpp.
#pragma once

#include <fast/nn/backend.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace backends {

struct BackendEntry {
  /// The model with weights from that seed. Throws Error(argument) on a model or on options that
  /// the backend does not have.
  std::unique_ptr<fast::Backend> (*make)(const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                         const fast::nn::BackendOptions& options);
};

namespace entries {
extern const BackendEntry nn, torch, dlib;
}  // namespace entries

/// Throws Error(argument) that lists the names.
const BackendEntry& by_name(std::string_view name);

}  // namespace backends
