// Command lines: of a table of options, and of programs that name their options to CLI11.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "options/option_table.hpp"

namespace tools {

/// An option of a command line, with its values.
struct GivenOption {
  fast::options::OptionSpec* row;
  std::vector<std::string> texts;
};

/// The options of a command line, in no order. Throws fast::Error (argument) for a name that no row
/// has. Values are not looked at.
std::vector<GivenOption> parse_command_line(fast::options::OptionTable& table,
                                            const std::string& program, int argc,
                                            const char* const* argv);

/// The same for programs that take arguments besides options: `others` are these, in their order.
/// An option that may be repeated takes one value at a time.
std::vector<GivenOption> parse_command_line(fast::options::OptionTable& table,
                                            const std::string& program, int argc,
                                            const char* const* argv,
                                            std::vector<std::string>& others);

/// Sets the rows.
void set(fast::options::OptionTable& table, const std::vector<GivenOption>& options);

/// Adds --version and parses. Prints the help of the program or its subcommand; the manual page for
/// --help-man, the completion of bash for --help-bash and the part of the documentation for
/// --help-markdown, if that is the only argument. For an unknown option or subcommand, the error
/// names the closest one. Returns the exit status when the program is to end: wrong_usage for what
/// is refused.
std::optional<int> parse(Command& command, int argc, char** argv);

/// "there is no option ...", with the closest option of the program or its subcommand.
std::string unknown_option(const Command& command, const std::string& argument);

/// Why a command line is refused. What neither the program nor its subcommand knows comes before
/// what is missing.
std::string refusal(const Command& program, const CLI::ParseError& error);

}  // namespace tools
