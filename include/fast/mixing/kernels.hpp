// The arithmetic of averaging: elementwise sums over a worker's own and its neighbors' values,
// vectorized with run-time dispatch (Highway). All pointers are to host memory; none needs
// alignment. Sums run in the order of `values`, with fused multiply-add, so that results depend on
// nothing but their inputs and the instruction set.
#pragma once

#include <fast/core/element.hpp>

#include <cstddef>
#include <span>

namespace fast::mixing {

/// out[e] = Σ_j weights[j] · (values[j][e] - own[e]).
void weighted_differences(float* out, const float* own, std::span<const float* const> values,
                          std::span<const float> weights, std::size_t count);
void weighted_differences(double* out, const double* own, std::span<const double* const> values,
                          std::span<const double> weights, std::size_t count);

/// out[e] = Σ_j weights[j] · values[j][e].
void weighted_sum(float* out, std::span<const float* const> values, std::span<const float> weights,
                  std::size_t count);
void weighted_sum(double* out, std::span<const double* const> values,
                  std::span<const double> weights, std::size_t count);

/// The fused end of a round: current[e] += Σ_j weights[j] · (values[j][e] - own[e]), and next[e] =
/// current[e]. `next` is written with streaming stores; call stream_fence() before telling anybody.
/// Streams moved: read 2 + neighbors, written 2. Without `current` (null) the weights are `own`
/// and live in slots alone: read 1 + neighbors, written 1. Returns whether all results are finite.
bool average(float* current, float* next, const float* own, std::span<const float* const> values,
             std::span<const float> weights, std::size_t count);
bool average(double* current, double* next, const double* own,
             std::span<const double* const> values, std::span<const double> weights,
             std::size_t count);
/// The same with slots of bfloat16: next[e] = current[e], rounded to nearest even.
bool average(float* current, BFloat16* next, const BFloat16* own,
             std::span<const BFloat16* const> values, std::span<const float> weights,
             std::size_t count);
/// out[e] = current[e] + Σ_j weights[j] · (values[j][e] - own[e]), in plain stores. The sum is
/// rounded as weighted_differences() rounds it, and then added. For values that may change while
/// they are read: `out` is scratch, to be copied from once the values are known to be whole.
/// Without `current` (null) the weights are `own`. Returns whether all results are finite.
bool average_apart(float* out, const float* current, const float* own,
                   std::span<const float* const> values, std::span<const float> weights,
                   std::size_t count);
bool average_apart(double* out, const double* current, const double* own,
                   std::span<const double* const> values, std::span<const double> weights,
                   std::size_t count);
bool average_apart(float* out, const float* current, const BFloat16* own,
                   std::span<const BFloat16* const> values, std::span<const float> weights,
                   std::size_t count);

/// Copies with streaming stores; call stream_fence() before telling anybody.
void stream_copy(void* to, const void* from, std::size_t size_bytes);

/// Orders streaming stores before all later stores.
void stream_fence() noexcept;

/// Sum of squares of a - b, accumulated in double: for consensus distances.
double squared_distance(const float* a, const float* b, std::size_t count);
double squared_distance(const double* a, const double* b, std::size_t count);

/// Sums of replicas in double, for mean models: sums[e] += values[j][e], in the order of j.
void add(double* sums, std::span<const float* const> values, std::size_t count);
void add(double* sums, std::span<const double* const> values, std::size_t count);
/// The same of the differences values[j][e] - origin[e]. Returns `squares` plus the squares of
/// each j in turn: the bits do not depend on how many replicas are given at once.
double add_differences(double* sums, double squares, std::span<const float* const> values,
                       const float* origin, std::size_t count);
double add_differences(double* sums, double squares, std::span<const double* const> values,
                       const double* origin, std::size_t count);
/// out[e] = sums[e] / divisor, rounded once.
void divide(float* out, const double* sums, double divisor, std::size_t count);
void divide(double* out, const double* sums, double divisor, std::size_t count);
double sum_of_squares(const double* values, std::size_t count);

/// True when every value is finite.
bool all_finite(const float* values, std::size_t count);
bool all_finite(const double* values, std::size_t count);

}  // namespace fast::mixing
