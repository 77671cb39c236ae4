// What a codec does: a record at the end of its file, whose name stands here and in names.cpp.
#pragma once

#include <fast/codec/block.hpp>

namespace fast::codec {

/// Of a codec whose code of a run is that of its elements in order. What is absent is not done, or
/// by the functions that are there.
struct Record {
  bool for_users = true;      ///< may be chosen; else rules alone take it
  bool stochastic = false;    ///< there is also NAME_stochastic, which rounds at random
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
extern const Record identity, bf16, fp16, int8, f64, sparse, selected, int4, int2;
}  // namespace records

}  // namespace fast::codec
