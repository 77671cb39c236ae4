// The backends of fast-train: each has a row in its file, whose name CMakeLists.txt lists.
#pragma once

#include <fast/nn/backend.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace backends {

struct Row {
  /// The model with weights from that seed. Throws Error(argument) on a model or on options that
  /// the backend does not have.
  std::unique_ptr<fast::Backend> (*make)(const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                         const fast::nn::BackendOptions& options);
};

namespace rows {
#define FAST_ROW(name) extern const Row name;
#include "backends/rows.inc"
#undef FAST_ROW
}  // namespace rows

std::vector<std::string_view> names();
/// Throws Error(argument) that lists the names.
const Row& by_name(std::string_view name);

}  // namespace backends
