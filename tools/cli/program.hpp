// What the command line of a program takes. Its help, its manual page, its completion by bash and
// its part of the documentation are made from this.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "options/option_table.hpp"

namespace tools {

// The parts of help texts: groups of options, and what is said about a row.

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

/// An option, or an argument without a name.
struct Argument {
  std::vector<std::string> names{};  ///< "--epochs", "-n"; of an argument without a name: "run"
  std::string value{};               ///< what stands for its value: "N"; empty: it takes none
  std::string help{};
  std::string initial{};              ///< the default as a text; may be empty
  std::vector<std::string> offers{};  ///< see OptionSpec::offers
  bool is_repeated = false;           ///< of an argument without a name
};

struct Section {
  std::string name{};  ///< "data"
  std::string title{};
  std::vector<Argument> options{};
  std::string example{};  ///< a command; may be empty
};

struct Program {
  std::string name{};
  std::string text{};                ///< what it does: the first sentence, then the rest
  std::vector<std::string> usage{};  ///< command lines with a note each; empty: made from the rest
  std::string example{};             ///< a command; may be empty
  std::vector<Section> sections{};
  std::vector<Argument> arguments{};  ///< those without names, in their order
  std::vector<Program> commands{};    ///< "show" of "fast-topology show"
  bool starts_another =
      false;            ///< its options end where the command line of another program begins
  std::string notes{};  ///< after the options; may be empty
};

/// The name of the section of --help and --version.
inline constexpr std::string_view common_options = "common";

/// The rows that users see, by groups.
Program program_of(const fast::options::OptionTable& table, const std::vector<Group>& groups,
                   const std::string& name, const std::string& text);

/// The words, the names of topologies, and options::files.
std::vector<std::string> topology_words(std::vector<std::string> words = {});

/// The names of rules.
std::vector<std::string> rule_words();

/// As one word of a command line, in quotes if it needs them.
std::string shell_word(const std::string& text);

/// The help in a terminal, of 100 columns. `name`: with those of the programs it belongs to, as
/// "fast-topology show".
std::string help_text(const Program& program, const std::string& name);

/// A table of each section, between the lines "<!-- options: NAME -->" and "<!-- end -->".
std::string options_markdown(const Program& program);

/// The program with its subcommands, between the lines "<!-- options: NAME -->" and "<!-- end -->".
std::string program_markdown(const Program& program);

/// A manual page in the macros of man(7), section 1.
std::string manual_page(const Program& program);

/// A script for bash that completes options, their values, subcommands and files. It needs nothing
/// but bash; where bash-completion is loaded, what follows the options of a program that starts
/// another one is completed as that program's.
std::string bash_completion(const Program& program);

/// The page that a command line asks for: --help-man or --help-bash as the only argument. Other
/// command lines do not call `describe`.
std::optional<std::string> requested_page(const std::function<Program()>& describe, int argc,
                                          const char* const* argv);

/// What is written after the name of a program.
std::string synopsis(const Program& program);

/// The help of an option or argument, with its default.
std::string help_of(const Argument& argument);

}  // namespace tools
