// Python's arrays as tensors of the library, without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <fast/core/tensor_view.hpp>
#include <fast/worker/worker.hpp>
#include <memory>

#include <vector>

namespace fast::python {

/// Views, and what keeps their memory alive.
struct Tensors {
  std::vector<nanobind::ndarray<>> owners;
  std::vector<TensorView> views;
  nanobind::object owner = {};  ///< of addresses without arrays
};

/// Of a sequence of (name, array, is_buffer, dtype). Arrays give their memory by DLPack or the
/// buffer protocol. dtype is None, or "bf16" for memory that NumPy has as 16-bit integers. Arrays
/// of integers and booleans that the library does not know are left out: they stay with their
/// worker. Throws Error(argument) on arrays that cannot be shared.
Tensors tensors_of(nanobind::handle list);
/// Of a sequence of the same tuples. Arrays of other types than those that are averaged are bytes.
Tensors bytes_of(nanobind::handle list);

// Tensors in the memory of a GPU: builds with fast::cuda average them there.

/// Whether this is a build with fast::cuda.
extern const bool has_cuda;

/// Where the first of the tensors is; in host memory if there are none.
Device device_of(const std::vector<TensorView>& views);

/// That of the tensors' device; null for tensors in host memory. Throws Error(argument) in a build
/// without fast::cuda, and Error(resource) as cuda::accelerator() does.
std::shared_ptr<Accelerator> accelerator_of(const std::vector<TensorView>& views, Seconds deadline);

}  // namespace fast::python
