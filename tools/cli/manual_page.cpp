#include <fast/core/version.hpp>

#include "cli/program.hpp"

namespace tools {

namespace {

/// As roff reads it: no character is a command.
std::string roff(std::string_view text) {
  std::string result;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) result += "\\&";
    at_start = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

/// Text and, where lines are indented, the lines as they are.
std::string paragraphs(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const bool as_it_is = line.starts_with("  ");
    if (as_it_is) {
      result += ".PP\n.nf\n" + roff(line) + "\n.fi\n";
    } else if (line.empty()) {
      result += ".PP\n";
    } else {
      result += roff(line) + '\n';
    }
    at = end + 1;
  }
  return result;
}

std::string item(const Argument& argument) {
  std::string names;
  for (const std::string& name : argument.names) {
    if (!names.empty()) names += ", ";
    names += name.starts_with("-") ? bold(name) : italic(name);
  }
  const bool is_named = argument.names.front().starts_with("-");
  if (is_named && !argument.value.empty()) names += ' ' + italic(argument.value);
  return fmt::format(".TP\n{}\n{}\n", names, roff(argument.help));
}

std::string items(const Program& program) {
  std::string text;
  for (const Argument& argument : program.arguments) text += item(argument);
  for (const Section& section : program.sections) {
    if (!section.title.empty()) text += fmt::format(".SS \"{}\"\n", roff(section.title));
    for (const Argument& option : section.options) text += item(option);
    if (!section.example.empty()) {
      text += fmt::format(".PP\nExample:\n.PP\n.nf\n  {}\n.fi\n", roff(section.example));
    }
  }
  return text;
}

/// What is written after the name of a program or a subcommand.
std::string synopsis(const Program& program) {
  std::string text;
  if (!program.sections.empty()) text += " [" + italic("OPTIONS") + ']';
  for (const Argument& argument : program.arguments) {
    text += ' ' + italic(argument.names.front());
  }
  if (program.starts_another) text += ' ' + italic("PROGRAM") + " [" + italic("ARGUMENTS") + "...]";
  return text;
}

/// "trains a classifier on several workers": of the first sentence.
std::string in_short(const Program& program) {
  std::string text = program.text.substr(0, program.text.find_first_of(".:\n"));
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string commands(const Program& program) {
  std::string text;
  for (const Program& command : program.commands) {
    text += fmt::format(".SS \"{}{}\"\n", roff(command.name), synopsis(command));
    text += roff(command.text) + '\n' + items(command);
  }
  return text;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string manual_page(const Program& program) {
  std::string text = fmt::format(".TH {} 1 \"\" \"FAST {}\" \"User Commands\"\n",
                                 upper(program.name), fast::version());
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(program.name), roff(in_short(program)));
  text += ".SH SYNOPSIS\n";
  if (program.commands.empty()) {
    text += fmt::format("{}{}\n", bold(program.name), synopsis(program));
  }
  for (const Program& command : program.commands) {
    text +=
        fmt::format("{} {}{}\n.br\n", bold(program.name), bold(command.name), synopsis(command));
  }
  text += ".SH DESCRIPTION\n" + paragraphs(program.text);
  text += ".SH OPTIONS\n" + items(program);
  if (!program.commands.empty()) text += ".SH COMMANDS\n" + commands(program);
  if (!program.notes.empty()) text += ".SH NOTES\n" + paragraphs(program.notes);
  return text;
}

}  // namespace tools
