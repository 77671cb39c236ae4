// Options in a TOML file: key = value, with the names of the command line.
#pragma once

#include <string>
#include <vector>

#include "cli/program.hpp"
#include "options/option_table.hpp"

namespace tools {

/// Sets the rows that a file names. A value that is the default does not count as given. Throws
/// fast::Error (argument) with file and line for an unknown name or a value of the wrong type.
void read_config(fast::options::OptionTable& table, const std::string& path);
/// The same from the file's text.
void parse_config(fast::options::OptionTable& table, const std::string& text,
                  const std::string& path);

/// All rows as a file that read_config() reads to the same values, with their help as comments.
/// Rows without a value are comments; `resolved`, a table of the same rows, has the values that
/// stand for them in this run.
std::string config_text(const fast::options::OptionTable& table,
                        const fast::options::OptionTable& resolved,
                        const std::vector<Group>& groups, const std::string& program);

}  // namespace tools
