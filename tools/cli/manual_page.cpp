#include <fast/core/version.hpp>

#include "cli/program.hpp"
#include "core/text.hpp"

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
  for (const std::string_view line : fast::split_text(text, '\n')) {
    if (line.starts_with("  ")) {
      result += ".PP\n.nf\n" + roff(line) + "\n.fi\n";
    } else if (line.empty()) {
      result += ".PP\n";
    } else {
      result += roff(line) + '\n';
    }
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
  return fmt::format(".TP\n{}\n{}\n", names, roff(help_of(argument)));
}

std::string example(const std::string& command) {
  if (command.empty()) return {};
  return fmt::format(".PP\nExample:\n.PP\n.nf\n  {}\n.fi\n", roff(command));
}

/// Sections of a subcommand are paragraphs of its section.
std::string items(const Program& program, const char* heading) {
  std::string text = example(program.example);
  for (const Argument& argument : program.arguments) text += item(argument);
  for (const Section& section : program.sections) {
    text += fmt::format("{} \"{}\"\n", heading, roff(section.title));
    for (const Argument& option : section.options) text += item(option);
    text += example(section.example);
  }
  return text;
}

/// What is written after the name of a program or a subcommand.
std::string roff_synopsis(const Program& program) {
  std::string text;
  if (!program.sections.empty()) text += " [" + italic("OPTIONS") + ']';
  for (const Argument& argument : program.arguments) {
    text += ' ' + italic(argument.names.front()) + (argument.is_repeated ? "..." : "");
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
    text += fmt::format(".SS \"{}{}\"\n", roff(command.name), roff_synopsis(command));
    text += roff(command.text) + '\n' + items(command, ".PP\n.B");
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
    text += fmt::format("{}{}\n", bold(program.name), roff_synopsis(program));
  }
  for (const Program& command : program.commands) {
    text += fmt::format("{} {}{}\n.br\n", bold(program.name), bold(command.name),
                        roff_synopsis(command));
  }
  text += ".SH DESCRIPTION\n" + paragraphs(program.text);
  text += ".SH OPTIONS\n" + items(program, ".SS");
  if (!program.commands.empty()) text += ".SH COMMANDS\n" + commands(program);
  if (!program.notes.empty()) text += ".SH NOTES\n" + paragraphs(program.notes);
  return text;
}

}  // namespace tools
