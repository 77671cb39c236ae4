// SIMD vectors of the compiler, only for the sources in this folder.
#pragma once

#include "nn/kernels/kernels.hpp"

namespace fast::nn {
namespace {

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using type [[gnu::vector_size(vector_bytes), gnu::may_alias]] = float;
};
template <>
struct VectorOf<double> {
  using type [[gnu::vector_size(vector_bytes), gnu::may_alias]] = double;
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
const Vector<T>* vectors(const T* data) {
  return reinterpret_cast<const Vector<T>*>(data);
}
template <class T>
Vector<T>* vectors(T* data) {
  return reinterpret_cast<Vector<T>*>(data);
}

constexpr Index smaller(Index a, Index b) { return a < b ? a : b; }
constexpr Index larger(Index a, Index b) { return a < b ? b : a; }

}  // namespace
}  // namespace fast::nn
