#include <fmt/ranges.h>

#include "cli/program.hpp"
#include "core/text.hpp"

namespace tools {

namespace {

constexpr std::size_t help_column = 28;

/// "  --epochs N                  passes [5]"
std::string help_entry(const std::string& names, const std::string& help) {
  std::string left = "  " + names;
  if (left.size() + 2 > help_column) left += '\n' + std::string(help_column, ' ');
  return fmt::format("{:<{}}{}\n", left, help_column, wrapped(help, help_column));
}

std::string help_entry(const Argument& argument) {
  std::string names = fmt::format("{}", fmt::join(argument.names, ", "));
  const bool is_named = argument.names.front().starts_with("-");
  if (is_named && !argument.value.empty()) names += ' ' + argument.value;
  return help_entry(names, help_of(argument));
}

/// Lines that begin with blanks stay as they are.
std::string help_paragraphs(const std::string& text) {
  std::string result;
  for (const std::string_view line : fast::split_text(text, '\n')) {
    result += (line.starts_with("  ") ? std::string(line) : wrapped(line, 0)) + '\n';
  }
  return result;
}

std::string help_usage(const Program& program, const std::string& name) {
  std::vector<std::string> lines = program.usage;
  if (lines.empty()) lines.push_back(name + synopsis(program));
  std::string text = fmt::format("Usage: {}\n", fmt::join(lines, "\n       "));
  if (!program.example.empty()) text += fmt::format("Example: {}\n", program.example);
  return text;
}

std::string help_arguments(const Program& program) {
  if (program.arguments.empty()) return {};
  std::string text = "\nArguments:\n";
  for (const Argument& argument : program.arguments) text += help_entry(argument);
  return text;
}

std::string help_commands(const Program& program) {
  if (program.commands.empty()) return {};
  std::string text = "\nSubcommands:\n";
  for (const Program& command : program.commands) text += help_entry(command.name, command.text);
  return text;
}

std::string help_section(const Section& section) {
  std::string text = fmt::format("\n{}:\n", section.title);
  for (const Argument& option : section.options) text += help_entry(option);
  if (!section.example.empty()) text += fmt::format("  Example: {}\n", section.example);
  return text;
}

}  // namespace

std::string help_text(const Program& program, const std::string& name) {
  std::string text = help_paragraphs(program.text) + '\n' + help_usage(program, name);
  text += help_arguments(program) + help_commands(program);
  for (const Section& section : program.sections) text += help_section(section);
  if (!program.notes.empty()) text += '\n' + help_paragraphs(program.notes);
  return text;
}

}  // namespace tools
