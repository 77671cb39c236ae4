#include <fast/core/version.hpp>

#include <fmt/ranges.h>

#include <algorithm>

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

namespace {

std::string markdown_row(const Argument& argument) {
  const std::string& initial = argument.initial;
  return fmt::format("| `{}` | {} | {} |\n", fmt::join(argument.names, ", "),
                     initial.empty() ? "" : fmt::format("`{}`", initial), cell(argument.help));
}

std::string markdown_table(const Section& section, const std::string& heading) {
  std::string text = fmt::format("| {} | default | meaning |\n|---|---|---|\n", heading);
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
  std::string text = "\n";
  for (const Argument& argument : program.arguments)
    text += wrapped(fmt::format("- `{}`: {}", argument.names.front(), help_of(argument)), 2) + '\n';
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
  if (!section.example.empty()) text += fmt::format("Example: `{}`\n", section.example);
  return text;
}

std::string markdown_head(const Program& program, const std::string& name) {
  std::string text = markdown_lines(program.text) + '\n';
  std::vector<std::string> usage = program.usage;
  if (usage.empty()) usage.push_back(name + synopsis(program));
  text += fmt::format("Usage: `{}`.\n", fmt::join(usage, "`\nor `"));
  if (!program.example.empty()) text += fmt::format("Example: `{}`\n", program.example);
  return text + markdown_arguments(program);
}

/// Without the options that all programs have.
std::string markdown_sections(const Program& program) {
  std::string text;
  for (const Section& section : program.sections) {
    if (section.name == common_options) continue;
    text += '\n' + markdown_table(section, section.title);
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
    text += owner == command.name ? markdown_table(section, section.title)
                                  : reference(section, program.name, owner);
  }
  return text;
}

}  // namespace

std::string options_markdown(const Program& program) {
  std::string text;
  for (const Section& section : program.sections) {
    text += fmt::format("<!-- options: {} -->\n{}<!-- end -->\n", section.name,
                        markdown_table(section, "option"));
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

using fast::options::directories;
using fast::options::files;

namespace {

std::vector<Argument> options_of(const Program& program) {
  std::vector<Argument> options;
  for (const Section& section : program.sections) {
    options.insert(options.end(), section.options.begin(), section.options.end());
  }
  return options;
}

/// "_fast_train": a name of a function.
std::string function_name(const std::string& program) {
  return "_" + fast::with_underscores(program);
}

/// The lines of bash that offer words, files and directories.
std::string offering(const std::vector<std::string>& offers) {
  std::vector<std::string> words;
  std::string actions;
  for (const std::string& offer : offers) {
    if (offer == files) actions += " -f";
    if (offer == directories) actions += " -d";
    if (offer != files && offer != directories) words.push_back(offer);
  }
  if (!actions.empty()) actions = " compopt -o filenames 2>/dev/null; _fast_offer" + actions + ";";
  if (!words.empty())
    actions = fmt::format(" _fast_offer -W \"{}\";", fmt::join(words, " ")) + actions;
  return actions;
}

/// "COMMAND:--option|COMMAND:-o) ...; return ;;" for each option that takes a value.
std::string value_cases(const Program& program, const std::string& command) {
  std::string text;
  for (const Argument& option : options_of(program)) {
    if (option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(command + ":" + name);
    text += fmt::format("    {}){} return ;;\n", fmt::join(patterns, "|"), offering(option.offers));
  }
  for (const Program& each : program.commands) text += value_cases(each, each.name);
  return text;
}

/// The names of all options.
std::string option_words(const Program& program) {
  std::vector<std::string> words;
  for (const Argument& option : options_of(program)) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// What is there when the word is no option and no option's value.
std::string word_cases(const Program& program) {
  std::vector<std::string> names;
  std::string text;
  for (const Program& command : program.commands) {
    names.push_back(command.name);
    text +=
        fmt::format("    {}:-*) _fast_offer -W \"{}\" ;;\n", command.name, option_words(command));
    std::vector<std::string> offers;
    for (const Argument& argument : command.arguments) {
      offers.insert(offers.end(), argument.offers.begin(), argument.offers.end());
    }
    text += fmt::format("    {}:*){} ;;\n", command.name, offering(offers));
  }
  for (const Argument& argument : program.arguments) {
    names.insert(names.end(), argument.offers.begin(), argument.offers.end());
  }
  text += fmt::format("    :-*) _fast_offer -W \"{}\" ;;\n", option_words(program));
  return text + fmt::format("    :*){} ;;\n", offering(names));
}

/// Finds the subcommand among the words before the cursor.
std::string find_command(const Program& program) {
  if (program.commands.empty()) return {};
  std::vector<std::string> names;
  for (const Program& command : program.commands) names.push_back(command.name);
  return fmt::format(
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case ${{COMP_WORDS[i]}} in {}) command=${{COMP_WORDS[i]}} && break ;; esac\n"
      "  done\n",
      fmt::join(names, "|"));
}

/// Finds where the command line of the other program begins, and leaves the rest to its completion.
std::string find_program(const Program& program) {
  if (!program.starts_another) return {};
  std::vector<std::string> with_value;
  for (const Argument& option : options_of(program)) {
    if (option.value.empty()) continue;
    with_value.insert(with_value.end(), option.names.begin(), option.names.end());
  }
  return fmt::format(
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case ${{COMP_WORDS[i]}} in\n"
      "    {}) ((++i)); [[ ${{COMP_WORDS[i]}} != = ]] || ((++i)) ;;\n"
      "    --) ((++i)) && break ;;\n"
      "    -*) ;;\n"
      "    *) break ;;\n"
      "    esac\n"
      "  done\n"
      "  if ((i <= COMP_CWORD)) && [[ $word != -* || ${{COMP_WORDS[i]}} != \"$word\" ]]; then\n"
      "    if declare -F _command_offset >/dev/null; then _command_offset \"$i\" && return; fi\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    if ((i == COMP_CWORD)); then _fast_offer -c; else _fast_offer -f; fi\n"
      "    return\n"
      "  fi\n",
      fmt::join(with_value, "|"));
}

}  // namespace

std::string bash_completion(const Program& program) {
  const std::string function = function_name(program.name);
  std::string text = fmt::format(
      "# Completion for bash, made by: {0} --help-bash\n"
      "_fast_offer() {{ # what begins with $word of its caller\n"
      "  local found\n"
      "  mapfile -t found < <(compgen \"$@\" -- \"$word\")\n"
      "  COMPREPLY+=(\"${{found[@]}}\")\n"
      "}}\n"
      "{1}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} option= command= i\n"
      "  ((COMP_CWORD < 1)) || option=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  # bash takes = for a word of its own\n"
      "  if [[ $word == = ]]; then\n"
      "    word=\n"
      "  elif [[ $option == = ]]; then\n"
      "    option=${{COMP_WORDS[COMP_CWORD - 2]}}\n"
      "  fi\n"
      "  COMPREPLY=()\n",
      program.name, function);
  text += find_command(program) + find_program(program);
  text += fmt::format("  case $command:$option in\n{}  esac\n", value_cases(program, ""));
  text += fmt::format("  case $command:$word in\n{}  esac\n}}\n", word_cases(program));
  return text + fmt::format("complete -F {} {}\n", function, program.name);
}

}  // namespace tools
