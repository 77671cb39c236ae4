#include <fmt/ranges.h>

#include "cli/program.hpp"
#include "core/split_text.hpp"

namespace tools {

namespace {

std::string markdown_row(const Argument& argument) {
  const std::string& initial = argument.initial;
  return fmt::format("| `{}` | {} | {} |\n", fmt::join(argument.names, ", "),
                     initial.empty() ? "" : fmt::format("`{}`", initial), cell(argument.help));
}

std::string markdown_table(const Section& section) {
  std::string text = "| option | default | meaning |\n|---|---|---|\n";
  for (const Argument& option : section.options) text += markdown_row(option);
  if (!section.example.empty()) text += fmt::format("\nExample: `{}`\n", section.example);
  return text;
}

/// A line for each line of the text; indented lines are code.
std::string markdown_lines(const std::string& text) {
  std::string result;
  for (const std::string_view line : fast::split_text(text, '\n')) {
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    result += begin == 0 ? wrapped(line, 0) + '\n' : fmt::format("- `{}`\n", line.substr(begin));
  }
  return result;
}

std::string markdown_arguments(const Program& program) {
  if (program.arguments.empty()) return {};
  std::string text = "\n| argument | meaning |\n|---|---|\n";
  for (const Argument& argument : program.arguments) {
    text += fmt::format("| `{}` | {} |\n", argument.names.front(), cell(help_of(argument)));
  }
  return text;
}

/// Without the options that all programs have.
std::string markdown_body(const Program& program, const std::string& name) {
  std::string text = markdown_lines(program.text) + '\n';
  std::vector<std::string> usage = program.usage;
  if (usage.empty()) usage.push_back(name + synopsis(program));
  text += fmt::format("Usage: `{}`\n", fmt::join(usage, "`\nor `"));
  if (!program.example.empty()) text += fmt::format("\nExample: `{}`\n", program.example);
  text += markdown_arguments(program);
  for (const Section& section : program.sections) {
    if (section.name == common_options) continue;
    text += fmt::format("\n{}:\n\n{}", section.title, markdown_table(section));
  }
  return text;
}

}  // namespace

std::string options_markdown(const Program& program) {
  std::string text;
  for (const Section& section : program.sections) {
    text += fmt::format("<!-- options: {} -->\n{}<!-- end -->\n", section.name,
                        markdown_table(section));
  }
  return text;
}

std::string program_markdown(const Program& program) {
  std::string text =
      fmt::format("<!-- program: {} -->\n{}", program.name, markdown_body(program, program.name));
  for (const Program& command : program.commands) {
    const std::string name = program.name + ' ' + command.name;
    text += fmt::format("\n### {}\n{}", name, markdown_body(command, name));
  }
  if (!program.notes.empty()) text += '\n' + markdown_lines(program.notes);
  return text + "<!-- end -->\n";
}

}  // namespace tools
