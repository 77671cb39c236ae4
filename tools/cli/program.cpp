#include "cli/program.hpp"

namespace tools {

using namespace fast::options;

namespace {

Argument argument_of(const OptionSpec& row) {
  Argument argument;
  argument.names.push_back("--" + dashed(row.name));
  for (const std::string& alias : row.aliases) {
    argument.names.push_back((alias.size() == 1 ? "-" : "--") + dashed(alias));
  }
  argument.value = placeholder(row);
  argument.help = full_help(row);
  argument.initial = default_of(row);
  argument.offers = row.names;
  argument.offers.insert(argument.offers.end(), row.offers.begin(), row.offers.end());
  return argument;
}

}  // namespace

Program program_of(const OptionTable& table, const std::vector<Group>& groups,
                   const std::string& name, const std::string& text) {
  Program program;
  program.name = name;
  program.text = text;
  for (const Group& group : groups) {
    Section section{
        std::string(group.name), std::string(group.title), {}, std::string(group.example)};
    for (const OptionSpec& row : table.rows()) {
      if (row.group == group.name && !row.is_internal) section.options.push_back(argument_of(row));
    }
    program.sections.push_back(std::move(section));
  }
  return program;
}

std::optional<std::string> requested_page(const std::function<Program()>& describe, int argc,
                                          const char* const* argv) {
  if (argc != 2) return std::nullopt;
  const std::string_view request = argv[1];
  if (request == "--help-man") return manual_page(describe());
  if (request == "--help-bash") return bash_completion(describe());
  return std::nullopt;
}

std::string synopsis(const Program& program) {
  std::string text;
  if (!program.commands.empty()) text += " COMMAND";
  if (!program.sections.empty()) text += " [OPTIONS]";
  for (const Argument& argument : program.arguments) {
    text += ' ' + argument.names.front() + (argument.is_repeated ? "..." : "");
  }
  if (program.starts_another) text += " PROGRAM [ARGUMENTS...]";
  return text;
}

std::string help_of(const Argument& argument) {
  if (argument.initial.empty()) return argument.help;
  return fmt::format("{} [{}]", argument.help, argument.initial);
}

}  // namespace tools
