// What a worker's message looks like in its slot and on the wire. A codec is pure arithmetic on one
// worker: it neither averages nor moves anything. docs/reference/codecs.md says which to take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::codec {

/// Rows of the registry in lib/codec: those after `selected` are known by their names alone.
enum class Kind : std::uint8_t {
  identity,  ///< as it is
  bf16,      ///< 2 bytes an element, |x - Q(x)| ≤ 2^-8 |x|
  fp16,  ///< 2 bytes an element, |x - Q(x)| ≤ 2^-11 |x| for 2^-14 ≤ |x| < 65520, larger: infinity
  int8,      ///< 1 byte an element and a scale s a group: |x - Q(x)| ≤ s/2, s = max|x|/127
  f64,       ///< 8 bytes an element, exactly: for running sums of 32-bit values
  sparse,    ///< what is not 0, with its index: for rules that send few entries
  selected,  ///< entries that all workers know: for rules that choose them by the round
};

/// What a worker's messages are coded with.
struct Options {
  Kind kind = Kind::identity;
  /// bf16 and int8: up or down at random so that the mean is exact, in place of to nearest.
  bool stochastic = false;
  std::uint64_t seed = 1;  ///< of the random roundings; a worker's own follows from it and its rank
};

/// Those that a user may choose: identity, bf16, bf16_stochastic, fp16, int8, int8_stochastic,
/// int4, int2, qsgd4 and qsgd2.
std::vector<std::string_view> names();
/// Throws Error(argument) that lists the names.
Options by_name(std::string_view name);
std::string name(const Options& options);
/// Bits an element of 32, scales left out. The codec is one that a user may choose.
int bits(Kind kind);

/// How values are rounded to their code.
struct Rounding {
  std::optional<std::uint32_t> key{};  ///< random, a function of key and index; empty: to nearest
  std::uint64_t first = 0;             ///< index of the first element
};

}  // namespace fast::codec
