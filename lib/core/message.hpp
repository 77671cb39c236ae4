// Text for messages: what comes from outside (names in files, paths, exceptions of other libraries)
// in a form that is safe and useful to print.
#pragma once

#include <fast/core/deadline.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace fast {

enum class Newlines { escape, keep };

/// Returns the text with escapes for everything that a terminal would not show as a character.
/// These are "\n", "\t" and "\x1b" for control characters and for bytes that are not UTF-8, and
/// "\u202e" for characters that change the direction of writing. Other text stays as it is, so that
/// a second call changes nothing.
std::string printable(std::string_view text, Newlines newlines = Newlines::escape);

bool is_utf8(std::string_view text);

/// Returns why this process cannot read the file `path`: "there is no such file", "it is a
/// directory", "Permission denied". The text is empty if it can read the file.
std::string why_unreadable_file(const std::filesystem::path& path);
/// The same of a directory that is to be listed.
std::string why_unreadable_directory(const std::filesystem::path& path);

/// Returns what() of a fast::Error. For exceptions of the standard library about memory and files,
/// it returns a sentence that says what was being done and what to do.
std::string message_of(const std::exception& error);

// What the library and the programs write to standard error while they work.

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
