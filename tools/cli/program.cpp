#include "cli/program.hpp"

#include <algorithm>
#include <sstream>

namespace tools {

using namespace fast::options;

namespace {

constexpr std::string_view offers_mark = "offers ";  ///< begins the name of a validator

Argument argument_of(const Row& row) {
  Argument argument;
  argument.names.push_back("--" + dashed(row.name));
  for (const std::string& alias : row.aliases) {
    argument.names.push_back((alias.size() == 1 ? "-" : "--") + dashed(alias));
  }
  argument.value = placeholder(row);
  argument.help = full_help(row);
  if (!default_of(row).empty()) argument.help += fmt::format(" [{}]", default_of(row));
  argument.offers = row.names;
  argument.offers.insert(argument.offers.end(), row.offers.begin(), row.offers.end());
  return argument;
}

std::vector<std::string> offered(CLI::Option& option) {
  std::vector<std::string> words;
  try {
    for (int i = 0;; ++i) {
      const std::string name = option.get_validator(i)->get_name();
      if (!name.starts_with(offers_mark)) continue;
      std::istringstream rest(name.substr(offers_mark.size()));
      for (std::string word; rest >> word;) words.push_back(word);
    }
  } catch (const CLI::OptionNotFound&) {  // there are no more
  }
  return words;
}

Argument argument_of(CLI::Option& option) {
  Argument argument;
  for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  if (argument.names.empty()) argument.names.push_back(option.get_name(true));
  if (option.get_items_expected_max() > 0) {
    const std::string type = option.get_type_name();
    argument.value = type.substr(0, type.find(':'));
  }
  argument.help = option.get_description();
  const std::string initial = option.get_default_str();
  if (!initial.empty() && initial != "[]") argument.help += fmt::format(" [{}]", initial);
  argument.offers = offered(option);
  return argument;
}

}  // namespace

Program program_of(const OptionTable& table, const std::vector<Group>& groups,
                   const std::string& name, const std::string& text) {
  Program program;
  program.name = name;
  program.text = text;
  for (const Group& group : groups) {
    Section section{std::string(group.title), {}, std::string(group.example)};
    for (const Row& row : table.rows()) {
      if (row.group == group.name && !row.is_internal) section.options.push_back(argument_of(row));
    }
    program.sections.push_back(std::move(section));
  }
  return program;
}

Program program_of(CLI::App& app) {
  Program program;
  program.name = app.get_name();
  program.text = app.get_description();
  program.starts_another = app.get_prefix_command();
  program.notes = app.get_footer();
  Section all;
  for (CLI::Option* option : app.get_options()) {
    const bool is_named = option->nonpositional();
    (is_named ? all.options : program.arguments).push_back(argument_of(*option));
  }
  program.sections.push_back(std::move(all));
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    program.commands.push_back(program_of(*command));
  }
  return program;
}

void offer(CLI::Option* option, const std::vector<std::string>& words) {
  std::string name(offers_mark);
  for (const std::string& word : words) name += word + ' ';
  option->check(CLI::Validator([](std::string&) { return std::string(); }, "", name));
}

std::optional<std::string> requested_page(const std::function<Program()>& describe, int argc,
                                          const char* const* argv) {
  if (argc != 2) return std::nullopt;
  const std::string_view request = argv[1];
  if (request == "--help-man") return manual_page(describe());
  if (request == "--help-bash") return bash_completion(describe());
  return std::nullopt;
}

}  // namespace tools
