// Codes and decodes runs of values, vectorized with run-time dispatch (Highway). Nothing needs
// alignment. NaN and infinities survive: as themselves, or, in int8, by making the whole group of
// elements that shares their scale NaN.
#pragma once

#include <fast/codec/codec.hpp>
#include <fast/core/element.hpp>

#include <cstddef>

namespace fast::codec {

/// Elements that share a scale in int8: a float, then their codes (those of 32 elements
/// interleaved).
inline constexpr std::size_t group_elements = 256;

/// Bytes of `count` coded values. Runs of multiples of group_elements may be coded one by one.
std::size_t coded_bytes(Kind kind, std::size_t count);

/// Kinds whose record has `encode`, and f64. `to` has room for coded_bytes(kind, count).
void encode(Kind kind, const float* from, std::size_t count, std::byte* to,
            const Rounding& rounding = {});
void encode(Kind kind, const double* from, std::size_t count, std::byte* to,
            const Rounding& rounding = {});
void decode(Kind kind, const std::byte* from, std::size_t count, float* to);
void decode(Kind kind, const std::byte* from, std::size_t count, double* to);

/// Codes x + e and leaves in e what that lost (error feedback, Seide et al. 2014; Karimireddy et
/// al. 2019, arXiv 1901.09847, algorithm 1), so that over time the codes' sum follows that of x.
/// Where the code is not finite, e becomes 0.
void encode_with_feedback(Kind kind, const float* x, float* e, std::size_t count, std::byte* to,
                          const Rounding& rounding = {});
void encode_with_feedback(Kind kind, const double* x, double* e, std::size_t count, std::byte* to,
                          const Rounding& rounding = {});

/// Conversions of 16-bit storage; rounding to nearest even, NaN and infinities survive.
void widen(float* to, const BFloat16* from, std::size_t count);
void widen(float* to, const Float16* from, std::size_t count);
void narrow(BFloat16* to, const float* from, std::size_t count);
void narrow(Float16* to, const float* from, std::size_t count);

// What a codec does: a record at the end of its file, whose name stands here and in names.cpp.

/// Of a codec whose code of a run is that of its elements in order. What is absent is not done, or
/// by the functions that are there.
struct Record {
  bool for_users = true;      ///< may be chosen; else rules alone take it
  bool stochastic = false;    ///< there is also NAME_stochastic, which rounds at random
  bool random = false;        ///< NAME itself rounds at random; there is no other one
  bool feeds_back = false;    ///< what coding lost is added to the next message
  bool by_tensor = false;     ///< groups do not go beyond a tensor
  bool keeps_halves = false;  ///< 16-bit parameters travel as they are

  std::size_t (*coded_bytes)(std::size_t count) = nullptr;
  void (*encode)(const float* from, std::size_t count, std::byte* to,
                 const Rounding& rounding) = nullptr;
  void (*decode)(const std::byte* from, std::size_t count, float* to) = nullptr;
  /// Absent: by way of floats.
  void (*encode_doubles)(const double* from, std::size_t count, std::byte* to) = nullptr;
  void (*decode_doubles)(const std::byte* from, std::size_t count, double* to) = nullptr;
  /// encode_with_feedback(); absent: by encode and decode.
  void (*encode_with_feedback)(const float* x, float* e, std::size_t count, std::byte* to,
                               const Rounding& rounding) = nullptr;
};

/// Throws Error(internal) when there is no such kind.
const Record& record_of(Kind kind);

namespace records {
extern const Record identity, bf16, fp16, int8, f64, sparse, selected, int4, int2, qsgd4, qsgd2;
}  // namespace records

}  // namespace fast::codec
