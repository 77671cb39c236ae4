// What the library and the programs write to standard error while they work.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <fast/core/deadline.hpp>
#include <string_view>
#include <utility>

namespace fast {

/// How long a text waits for a reader that takes nothing: a full pipe, a stopped terminal. After
/// such a wait, texts do not wait any more until one was written.
inline constexpr Seconds longest_say{1};

/// Writes the text. Never throws, and never blocks for longer than `patience`. What cannot be
/// written (full disk, closed terminal, no reader) is lost.
void write_or_drop(std::FILE* to, std::string_view text, Seconds patience = longest_say) noexcept;

/// Writes it to standard error.
template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) noexcept {
  try {
    write_or_drop(stderr, fmt::format(format, std::forward<Values>(values)...));
  } catch (const std::exception&) {  // no memory for the text
  }
}

}  // namespace fast
