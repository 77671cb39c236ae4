// Python's arrays as tensors of the library, without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <fast/core/tensor_view.hpp>

#include <vector>

namespace fast::python {

/// Views, and what keeps their memory alive.
struct Tensors {
  std::vector<nanobind::ndarray<>> owners;
  std::vector<TensorView> views;
};

/// Of a sequence of (name, array, is_buffer, dtype). Arrays give their memory by DLPack or the
/// buffer protocol. dtype is None, or "bf16" for memory that NumPy has as 16-bit integers. Arrays
/// of integers and booleans that the library does not know are left out: they stay with their
/// worker. Throws Error(argument) on arrays that cannot be shared.
Tensors tensors_of(nanobind::handle list);
/// Of a sequence of the same tuples. Arrays of other types than those that are averaged are bytes.
Tensors bytes_of(nanobind::handle list);

}  // namespace fast::python
