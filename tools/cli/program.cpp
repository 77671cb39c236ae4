#include "cli/program.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/algorithm/rules.hpp>
#include <fast/topology/load.hpp>

#include "core/message.hpp"
#include "core/text.hpp"

namespace tools {

using namespace fast::options;

std::string cell(std::string_view from) {
  std::string text(from);
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, 1, '\\');
  }
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 4) {
    text.replace(at, 1, "&lt;");
  }
  return text;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string result;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (column > indent && column + 1 + word.size() > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    at = end + 1;
  }
  return result;
}

std::string placeholder(const OptionSpec& row) {
  constexpr const char* of_kinds[] = {"", "N", "X", "TEXT", "N|TEXT", "X|TEXT", "TEXT"};
  return row.names.empty() ? of_kinds[static_cast<std::size_t>(row.kind)] : "NAME";
}

std::string default_of(const OptionSpec& row) {
  if (row.kind == Kind::flag || row.initial.empty()) return {};
  return row.initial.front();
}

std::string full_help(const OptionSpec& row) {
  const bool all_told = std::ranges::all_of(
      row.names, [&](const std::string& name) { return row.help.find(name) != std::string::npos; });
  return all_told ? row.help : fmt::format("{}: {}", row.help, row.required);
}

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

std::vector<std::string> topology_words(std::vector<std::string> words) {
  for (const fast::TopologyName& topology : fast::topology_names()) {
    words.emplace_back(topology.name);
  }
  words.emplace_back(fast::options::files);
  return words;
}

std::vector<std::string> rule_words() {
  const auto names = fast::algorithm::names();
  return {names.begin(), names.end()};
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
  if (!text.empty() && text.find_first_not_of(harmless) == std::string::npos) return text;
  std::string word;
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return fast::printable("'" + word + "'");
}

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
