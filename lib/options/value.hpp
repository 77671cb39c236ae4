// How the value of an option is written as text: numbers in a range, names, paths, lists.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.hpp"

namespace fast::options {

/// What a configuration file holds for an option; mixed: a whole number or a text; mixed_number:
/// any number or a text.
enum class Kind { flag, integer, number, text, mixed, mixed_number, list };
inline Kind or_text(Kind kind) { return kind == Kind::number ? Kind::mixed_number : Kind::mixed; }

/// Whether a text is a value of the type, and then whether the value is allowed.
enum class Fit { good, unreadable, out_of_range };

/// Text of values of type T.
template <class T>
struct Value {
  Kind kind = Kind::text;
  std::string required{};  ///< "a whole number, at least 1"; for names "fixed or rotating"
  std::vector<std::string> names{};  ///< of a choice
  std::function<Fit(std::string_view text, T& value)> parse{};
  std::function<std::optional<std::string>(const T&)> format{};  ///< nothing: it is not set
  std::function<bool(const T&)> holds = [](const T&) { return true; };
};

/// "a, b or c".
std::string choice_of(const std::vector<std::string>& names);

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_counts = true;
  std::string_view text = "a {}";  ///< {}: what kind of number

  /// `high` does not count, so that infinity is never in a range.
  bool contains(double value) const {
    return std::isfinite(value) && (low_counts ? value >= low : value > low) && value < high;
  }
};
inline Range any() { return {}; }
inline Range zero_or_more() { return {.low = 0, .text = "a {}, 0 or more,"}; }
inline Range one_or_more() { return {.low = 1, .text = "a {}, at least 1,"}; }
inline Range positive() { return {.low = 0, .low_counts = false, .text = "a positive {}"}; }
/// [0, 1)
inline Range fraction() { return {.low = 0, .high = 1, .text = "a {} in [0, 1)"}; }

template <class Number>
Value<Number> number(const Range& range) {
  constexpr bool whole = std::integral<Number>;
  const char* kind = whole ? "whole number" : std::isinf(range.high) ? "finite number" : "number";
  Value<Number> value{.kind = whole ? Kind::integer : Kind::number,
                      .required = fmt::format(fmt::runtime(range.text), kind),
                      .parse = {},
                      .format = [](const Number& n) { return fmt::format("{}", n); }};
  if (std::is_same_v<Number, std::uint64_t> && std::isinf(range.low)) {
    value.required = "a whole number from 0 to 2^64 - 1";
  }
  value.holds = [range](const Number& n) { return range.contains(static_cast<double>(n)); };
  value.parse = [range](std::string_view text, Number& n) {
    Number found{};
    if (!reads(text, found)) return Fit::unreadable;
    if (!range.contains(static_cast<double>(found))) return Fit::out_of_range;
    n = found;
    return Fit::good;
  };
  return value;
}

/// "a whole number, 0 or more, or inf".
inline void add_word(std::string& required, std::string_view word) {
  required += fmt::format("{} or {}", required.ends_with(',') ? "" : ",", word);
}

/// The shortest decimal number that, multiplied by `factor`, is `product`.
std::string quotient_text(double product, double factor);

/// A number that is kept multiplied by `factor`: an option in milliseconds, a member in seconds.
Value<double> scaled(const Range& range, double factor);

using Seconds = std::chrono::duration<double>;
Value<Seconds> seconds(const Range& range);

/// A value that may also be given by a word: "inf".
template <class T>
Value<T> or_word(Value<T> value, std::string_view word, T meaning) {
  add_word(value.required, word);
  value.kind = or_text(value.kind);
  value.parse = [parse = value.parse, word, meaning](std::string_view text, T& into) {
    if (text != word) return parse(text, into);
    into = meaning;
    return Fit::good;
  };
  value.format = [format = value.format, word, meaning](const T& from) {
    return from == meaning ? std::string(word) : format(from);
  };
  value.holds = [holds = value.holds, meaning](const T& from) {
    return from == meaning || holds(from);
  };
  return value;
}

/// A value that need not be set. With a word, the word stands for no value.
template <class T>
Value<std::optional<T>> optional(const Value<T>& value, std::string_view word = {}) {
  Value<std::optional<T>> result{.kind = value.kind,
                                 .required = value.required,
                                 .names = value.names,
                                 .parse = {},
                                 .format = {}};
  if (!word.empty()) {
    add_word(result.required, word);
    result.kind = or_text(value.kind);
  }
  result.parse = [parse = value.parse, word](std::string_view text, std::optional<T>& into) {
    if (!word.empty() && text == word) {
      into.reset();
      return Fit::good;
    }
    T found{};
    const Fit fit = parse(text, found);
    if (fit == Fit::good) into = found;
    return fit;
  };
  result.format = [format = value.format, word](const std::optional<T>& from) {
    if (from) return format(*from);
    return word.empty() ? std::optional<std::string>() : std::string(word);
  };
  result.holds = [holds = value.holds](const std::optional<T>& from) {
    return !from || holds(*from);
  };
  return result;
}

/// One of the names.
template <class T>
Value<T> choice(const std::vector<std::pair<std::string, T>>& choices) {
  Value<T> value{.parse = {}, .format = {}};
  for (const auto& [name, meaning] : choices) value.names.push_back(name);
  value.required = choice_of(value.names);
  value.parse = [choices](std::string_view text, T& into) {
    for (const auto& [name, meaning] : choices) {
      if (name == text) return into = meaning, Fit::good;
    }
    return Fit::unreadable;
  };
  value.format = [choices](const T& from) -> std::optional<std::string> {
    for (const auto& [name, meaning] : choices) {
      if (meaning == from) return name;
    }
    return std::nullopt;
  };
  return value;
}
/// One of the names, kept as a text.
Value<std::string> choice(const std::vector<std::string>& names);

Value<bool> flag();
Value<std::string> text();
/// No path: nothing, or an empty text.
Value<std::optional<std::filesystem::path>> path();

}  // namespace fast::options
