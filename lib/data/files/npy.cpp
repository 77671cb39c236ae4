#include "data/files/npy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <fast/core/element.hpp>
#include <fast/core/error.hpp>
#include <optional>
#include <type_traits>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast::data {
namespace {

/// The dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class NpyHeader {
 public:
  NpyHeader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  /// "<f4" of 'descr'. A list of fields (a structured type) has no such text.
  std::string_view text_of(std::string_view key) {
    std::string_view rest = value_of(key);
    if (!rest.starts_with('\'')) refuse("its element type is a structure");
    rest.remove_prefix(1);
    return rest.substr(0, rest.find('\''));
  }
  bool truth_of(std::string_view key) {
    const std::string_view rest = value_of(key);
    if (!rest.starts_with("True") && !rest.starts_with("False")) refuse("its header is damaged");
    return rest.starts_with("True");
  }
  std::vector<std::int64_t> tuple_of(std::string_view key) {
    std::string_view rest = value_of(key);
    const std::size_t end = rest.find(')');
    if (!rest.starts_with('(') || end == std::string_view::npos) refuse("its header is damaged");
    rest = rest.substr(1, end - 1);
    std::vector<std::int64_t> sides;
    for (skip(rest); !rest.empty(); skip(rest)) {
      std::int64_t side = -1;
      const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), side);
      if (error != std::errc() || side < 0) refuse("its shape is damaged");
      sides.push_back(side);
      rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    }
    return sides;
  }
  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorKind::data, "numpy: {}: {}; save the array again with numpy.save", printable(name_),
         why);
  }

 private:
  static void skip(std::string_view& text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
  }
  std::string_view value_of(std::string_view key) const {
    const std::size_t at = text_.find(fmt::format("'{}':", key));
    if (at == std::string_view::npos) refuse("its header is damaged");
    std::string_view rest = text_.substr(at + key.size() + 3);
    skip(rest);
    return rest;
  }

  std::string_view text_, name_;
};

/// Splits the header's text off the bytes.
std::string_view take_header(std::string_view& bytes, const std::string& name) {
  const std::string_view all = bytes;
  require(bytes.starts_with(npy_magic) && bytes.size() >= 12, ErrorKind::data,
          "numpy: {}: it does not begin as NumPy's .npy files do; save the array with numpy.save",
          name);
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(all[at]); };
  const unsigned version = byte(6);
  require(version >= 1 && version <= 3, ErrorKind::data,
          "numpy: {}: version {} of the format; 1 to 3 are read", name, version);
  std::size_t length = byte(8) | std::size_t{byte(9)} << 8U;
  if (version > 1) length |= std::size_t{byte(10)} << 16U | std::size_t{byte(11)} << 24U;
  const std::size_t begin = version > 1 ? 12 : 10;
  require(length <= bytes.size() - begin, ErrorKind::data,
          "numpy: {}: truncated within its header; copy the file again", name);
  bytes.remove_prefix(begin + length);
  return all.substr(begin, length);
}

std::size_t npy_elements(const std::vector<std::int64_t>& shape, const NpyHeader& header) {
  std::size_t count = 1;
  for (const std::int64_t side : shape) {
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(side), &count))
      header.refuse("its shape has more elements than memory");
  }
  return count;
}

using NpyValues = decltype(NpyArray::values);

/// The numbers of an array, in the order of the file. `swapped`: their bytes are big-endian.
template <class Stored, class Wanted>
NpyValues read_npy_values(std::string_view bytes, bool swapped) {
  std::vector<Wanted> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::array<char, sizeof(Stored)> stored;
    std::memcpy(stored.data(), bytes.data() + i * sizeof(Stored), sizeof(Stored));
    if (swapped) std::reverse(stored.begin(), stored.end());
    const auto value = std::bit_cast<Stored>(stored);
    if constexpr (std::is_same_v<Stored, Float16>) {
      values[i] = to_float(value);
    } else {
      values[i] = static_cast<Wanted>(value);
    }
  }
  return values;
}

struct NpyType {
  std::string_view name;  ///< of NumPy, without the order of bytes
  std::size_t size_bytes;
  NpyValues (*read)(std::string_view bytes, bool swapped);
};

constexpr std::array<NpyType, 12> npy_types{
    {{"b1", 1, read_npy_values<std::uint8_t, std::int64_t>},
     {"u1", 1, read_npy_values<std::uint8_t, std::uint8_t>},
     {"i1", 1, read_npy_values<std::int8_t, std::int64_t>},
     {"u2", 2, read_npy_values<std::uint16_t, std::int64_t>},
     {"i2", 2, read_npy_values<std::int16_t, std::int64_t>},
     {"u4", 4, read_npy_values<std::uint32_t, std::int64_t>},
     {"i4", 4, read_npy_values<std::int32_t, std::int64_t>},
     {"u8", 8, read_npy_values<std::uint64_t, double>},
     {"i8", 8, read_npy_values<std::int64_t, std::int64_t>},
     {"f2", 2, read_npy_values<Float16, float>},
     {"f4", 4, read_npy_values<float, float>},
     {"f8", 8, read_npy_values<double, double>}}};

/// `descr` is "<f4", ">i2" or "|u1".
const NpyType& npy_type(std::string_view descr, const std::string& name) {
  if (descr.find('O') != std::string_view::npos)
    fail(ErrorKind::data,
         "numpy: {}: it holds pickled Python objects, which are not read; save an array of "
         "numbers (astype(\"float32\"))",
         name);
  for (const NpyType& type : npy_types) {
    if (!descr.empty() && type.name == descr.substr(1)) return type;
  }
  fail(ErrorKind::data,
       "numpy: {}: elements of type \"{}\"; bool, integers, float16, 32 and 64 and texts are read, "
       "convert with astype",
       name, printable(descr));
}

/// Appends a code point, or U+FFFD for a number that is none.
void append_utf8(std::string& text, std::uint32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::uint32_t first[] = {0, 0xc0, 0xe0, 0xf0};
  add(first[more] | code >> (6 * more));
  for (int k = more - 1; k >= 0; --k) add(0x80 | (code >> (6 * k) & 0x3f));
}

/// One element of type "U12" or "S12": numbers of Unicode, or bytes. Zeros fill it up.
std::string npy_text(std::string_view element, bool is_unicode, bool swapped) {
  std::string text;
  if (!is_unicode) return text.assign(element.substr(0, element.find_last_not_of('\0') + 1));
  for (std::size_t i = 0; i + 4 <= element.size(); i += 4) {
    std::array<char, 4> stored;
    std::memcpy(stored.data(), element.data() + i, 4);
    if (swapped) std::reverse(stored.begin(), stored.end());
    const auto code = std::bit_cast<std::uint32_t>(stored);
    append_utf8(text, code);
  }
  return text.substr(0, text.find_last_not_of('\0') + 1);
}

/// How many bytes an element of texts has; nothing for other types.
std::optional<std::size_t> text_bytes(std::string_view descr) {
  if (descr.size() < 3 || (descr[1] != 'U' && descr[1] != 'S')) return std::nullopt;
  std::uint32_t length = 0;
  if (!reads(descr.substr(2), length) || length == 0) return std::nullopt;
  return std::size_t{length} * (descr[1] == 'U' ? 4 : 1);
}

/// From Fortran's order (the first index runs fastest) to C's.
template <class T>
std::vector<T> in_c_order(const std::vector<T>& values, const std::vector<std::int64_t>& shape) {
  std::vector<T> turned(values.size());
  std::vector<std::int64_t> index(shape.size());
  for (T& value : turned) {
    std::size_t place = 0;
    for (std::size_t d = shape.size(); d-- > 0;)
      place = place * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(index[d]);
    value = values[place];
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return turned;
}

}  // namespace

NpyArray parse_npy(std::string_view bytes, std::string_view from) {
  const std::string name = printable(from);
  NpyHeader header(take_header(bytes, name), from);
  const std::string_view descr = header.text_of("descr");
  const std::optional<std::size_t> text = text_bytes(descr);
  const std::size_t each = text ? *text : npy_type(descr, name).size_bytes;
  NpyArray array{header.tuple_of("shape"), {}};
  const std::size_t count = npy_elements(array.shape, header);
  require(bytes.size() / each == count && bytes.size() % each == 0, ErrorKind::data,
          "numpy: {}: {} bytes of values, shape ({}) of {} needs {}; the file is truncated or "
          "damaged, copy the file again",
          name, bytes.size(), fmt::join(array.shape, ", "), printable(descr), count * each);
  const bool is_swapped = descr[0] == '>', is_turned = header.truth_of("fortran_order");
  for (std::size_t i = 0; text && i < count; ++i)
    array.texts.push_back(npy_text(bytes.substr(i * each, each), descr[1] == 'U', is_swapped));
  if (text) {
    if (is_turned) array.texts = in_c_order(array.texts, array.shape);
    return array;
  }
  array.values = npy_type(descr, name).read(bytes, is_swapped);
  if (is_turned)
    std::visit([&](auto& values) { values = in_c_order(values, array.shape); }, array.values);
  return array;
}

}  // namespace fast::data
