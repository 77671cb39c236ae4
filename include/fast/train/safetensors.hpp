// Models on disk in the safetensors format (https://github.com/huggingface/safetensors): eight
// bytes of header length, little-endian, a JSON header, the tensors one after the other.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <filesystem>
#include <vector>

namespace fast::train {

/// Writes to a temporary file beside `path` and renames it, so that `path` is whole or untouched.
/// Throws Error(resource) when it cannot be written.
void save_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors);

}  // namespace fast::train
