#include <fmt/ranges.h>

#include <algorithm>

#include "cli/program.hpp"
#include "core/text.hpp"

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

bool are_equal(const Section& one, const Section& other) {
  const auto same = [](const Argument& a, const Argument& b) {
    return a.names == b.names && a.help == b.help && a.initial == b.initial;
  };
  return one.title == other.title && std::equal(one.options.begin(), one.options.end(),
                                                other.options.begin(), other.options.end(), same);
}

/// The name of the first subcommand with such a section.
std::string owner_of(const Section& section, const Program& program) {
  for (const Program& command : program.commands) {
    for (const Section& each : command.sections) {
      if (are_equal(each, section)) return command.name;
    }
  }
  return program.name;
}

/// Options that an earlier subcommand has are not shown again.
std::string reference(const Section& section, const std::string& program,
                      const std::string& owner) {
  std::string text = fmt::format("{0}: see [{1} {2}](#{1}-{2}).\n", section.title, program, owner);
  if (!section.example.empty()) text += fmt::format("\nExample: `{}`\n", section.example);
  return text;
}

std::string markdown_head(const Program& program, const std::string& name) {
  std::string text = markdown_lines(program.text) + '\n';
  std::vector<std::string> usage = program.usage;
  if (usage.empty()) usage.push_back(name + synopsis(program));
  text += fmt::format("Usage: `{}`\n", fmt::join(usage, "`\nor `"));
  if (!program.example.empty()) text += fmt::format("\nExample: `{}`\n", program.example);
  return text + markdown_arguments(program);
}

/// Without the options that all programs have.
std::string markdown_sections(const Program& program) {
  std::string text;
  for (const Section& section : program.sections) {
    if (section.name == common_options) continue;
    text += fmt::format("\n{}:\n\n{}", section.title, markdown_table(section));
  }
  return text;
}

std::string markdown_command(const Program& command, const Program& program) {
  const std::string name = program.name + ' ' + command.name;
  std::string text = fmt::format("\n### {}\n{}", name, markdown_head(command, name));
  for (const Section& section : command.sections) {
    if (section.name == common_options) continue;
    const std::string owner = owner_of(section, program);
    text += '\n';
    text += owner == command.name ? fmt::format("{}:\n\n{}", section.title, markdown_table(section))
                                  : reference(section, program.name, owner);
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
      fmt::format("<!-- options: {} -->\n{}", program.name, markdown_head(program, program.name));
  text += markdown_sections(program);
  for (const Program& command : program.commands) text += markdown_command(command, program);
  if (!program.notes.empty()) text += '\n' + markdown_lines(program.notes);
  return text + "<!-- end -->\n";
}

}  // namespace tools
