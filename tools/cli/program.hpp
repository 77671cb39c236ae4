// What the command line of a program takes. Its manual page and its completion by bash are made
// from this.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/help.hpp"
#include "options/option_table.hpp"

namespace tools {

/// An option, or an argument without a name.
struct Argument {
  std::vector<std::string> names{};  ///< "--epochs", "-n"; of an argument without a name: "run"
  std::string value{};               ///< what stands for its value: "N"; empty: it takes none
  std::string help{};
  std::vector<std::string> offers{};  ///< see Row::offers
};

struct Section {
  std::string title{};
  std::vector<Argument> options{};
  std::string example{};  ///< a command; may be empty
};

struct Program {
  std::string name{};
  std::string text{};  ///< what it does: the first sentence, then the rest
  std::vector<Section> sections{};
  std::vector<Argument> arguments{};  ///< those without names, in their order
  std::vector<Program> commands{};    ///< "show" of "fast-topology show"
  bool starts_another =
      false;            ///< its options end where the command line of another program begins
  std::string notes{};  ///< after the options; may be empty
};

/// The rows that users see, by groups.
Program program_of(const fast::options::OptionTable& table, const std::vector<Group>& groups,
                   const std::string& name, const std::string& text);

/// The options, arguments and subcommands of a program that names them to CLI11.
Program program_of(CLI::App& app);

/// Tells completion what to offer for an option of CLI11: words, options::files or
/// options::directories. Does not restrict what is allowed.
void offer(CLI::Option* option, const std::vector<std::string>& words);

/// The words, the names of topologies, and options::files.
std::vector<std::string> topology_words(std::vector<std::string> words = {});

/// The names of rules.
std::vector<std::string> rule_words();

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

}  // namespace tools
