// Arithmetic of packed models, tensor by tensor.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <span>

namespace fast::sites {

/// The tensors of a model as they lie in its packed vector.
ParameterLayout packed_layout(const ParameterLayout& model, std::byte* packed);

template <class T>
std::span<T> elements(const Segment& place, std::byte* packed) {
  return {reinterpret_cast<T*>(packed + place.offset_bytes), place.element_count};
}

/// Calls part(place, T{}) for each tensor, which is of f32 or f64.
template <class Part>
void for_tensors(const ParameterLayout& layout, const Part& part) {
  for (const Segment& place : layout.tensors())
    place.dtype == DType::f64 ? part(place, double{}) : part(place, float{});
}

/// `to` becomes the change from `before` to `now`; of buffers `now`. It may be either of them.
void write_change(const ParameterLayout& layout, std::byte* before, std::byte* now, std::byte* to);
/// Adds what write_change() has written.
void add_change(const ParameterLayout& layout, std::byte* change, std::byte* to);

}  // namespace fast::sites
