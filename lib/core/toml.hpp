// toml++, without exceptions of its own. On some malformed files ("[#") version 3.3 fails an
// assertion, in release builds an assumption, just before the branch that would report the error;
// with neither it gets there.
#pragma once

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <fast/core/error.hpp>
#include <string>
#include <string_view>

namespace fast {

/// Where a text comes from, for its errors.
struct TomlOrigin {
  std::string path;
  ErrorKind kind = ErrorKind::argument;
  std::string_view who;  ///< what errors begin with
};

/// The table in a text. Throws Error(kind) with line and column for text that is not TOML.
toml::table toml_table(const std::string& text, const TomlOrigin& origin);

/// The text of a file. Throws Error(data), which begins with `who` and ends with `advice`, when the
/// file cannot be read.
std::string text_of_file(const std::string& path, std::string_view who, std::string_view advice);

/// What a file holds, for messages: "list", "whole number".
std::string toml_type(const toml::node& node);

}  // namespace fast
