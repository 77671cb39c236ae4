#include <fmt/ranges.h>

#include "cli/program.hpp"
#include "core/text.hpp"

namespace tools {

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
