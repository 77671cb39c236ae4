// Programs and subcommands that name their options to CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "cli/program.hpp"

namespace tools {

/// A program or a subcommand. Its options are in groups with an example each; defaults are part of
/// the help.
class Command : public CLI::App {
 public:
  /// `example`: a command line; it may be empty where each group has one.
  Command(const std::string& name, const std::string& text, const std::string& example = {});
  /// The group of the options that are added from here on.
  void begin_group(const std::string& title, const std::string& example);
  /// Adds a subcommand. One of them is then required.
  Command& add_command(const std::string& name, const std::string& text,
                       const std::string& example = {});

  /// "fast-topology show"
  std::string full_name() const;
  /// Of the group of this title; empty for the group of --help and --version.
  std::string example_of(const std::string& group) const;
  const std::string& example() const { return example_; }
  std::vector<Command*> commands() const { return commands_; }
  /// That was chosen on the command line, or this.
  Command& chosen();

 private:
  std::string example_;
  std::map<std::string, std::string> examples_;  ///< by the titles of groups
  std::vector<Command*> commands_;
};

/// The options, arguments and subcommands.
Program program_of(Command& command);

/// Tells completion what to offer for an option of CLI11: words, options::files or
/// options::directories. Does not restrict what is allowed.
CLI::Option* offer(CLI::Option* option, const std::vector<std::string>& words);

/// The option takes one of the words. The error for another one names the closest.
CLI::Option* restrict(CLI::Option* option, const std::vector<std::string>& words);

/// The option takes numbers in the range. The error for others says what is required.
template <class Number>
CLI::Option* restrict(CLI::Option* option, const fast::options::Range& range) {
  const auto why_not = [value = fast::options::number<Number>(range)](std::string& text) {
    Number ignored{};
    const fast::options::Fit fit = value.parse(text, ignored);
    if (fit == fast::options::Fit::good) return std::string();
    const char* quote = fit == fast::options::Fit::out_of_range ? "" : "\"";
    return fmt::format("{0}{1}{0}; {2} is required", quote, text, value.required);
  };
  return option->check(CLI::Validator(why_not, ""));
}

/// The options of a table on a command line of CLI11.
class TableOptions {
 public:
  explicit TableOptions(fast::options::OptionTable& table) : table_(table) {}

  /// All rows but internal ones, as a group of the command's options.
  void add_to(Command& command, const std::string& example);
  /// After parsing. Of the options of several commands, those that were given.
  void take();

 private:
  void add(Command& command, const fast::options::OptionSpec& row);

  fast::options::OptionTable& table_;
  std::list<std::vector<std::string>> texts_;  // places stay
};

}  // namespace tools
