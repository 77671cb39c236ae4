// The parts of help texts: groups of options, and what is said about a row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/option_table.hpp"

namespace tools {

/// Rows that are shown together.
struct Group {
  std::string_view name;     ///< OptionSpec::group
  std::string_view title;    ///< "Checkpoints"
  std::string_view example;  ///< a command
};

/// Text in lines of at most `width` columns; the lines after the first begin with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = 100);

/// Text for a cell of a table in Markdown.
std::string cell(std::string_view from);

/// The help of a row, with the names that the row's value can be.
std::string full_help(const fast::options::OptionSpec& row);

/// What stands for the value of a row: "N"; empty for a flag.
std::string placeholder(const fast::options::OptionSpec& row);

/// As a text; nothing where there is no default, or where it is off.
std::string default_of(const fast::options::OptionSpec& row);

}  // namespace tools
