#include "cli/command.hpp"

#include <algorithm>
#include <sstream>

#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/text.hpp"

namespace tools {

using namespace fast;

namespace {

constexpr std::string_view offers_mark = "offers ";  ///< begins the name of a validator
constexpr char ungrouped[] = "Options";              ///< CLI11's

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

/// "N" for a whole number and "X" for another one, as for options of tables.
std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  if (name == "INT" || name == "UINT") return "N";
  return name == "FLOAT" ? "X" : name;
}

/// Lists without brackets; "4e6" for "4e+06".
std::string initial_of(const CLI::Option& option) {
  std::string text = option.get_default_str();
  double number = 0;
  if (reads(text, number)) {
    for (const std::string_view zero : {"e+0", "e+", "e-0"}) {
      const std::size_t at = text.find(zero);
      if (at != std::string::npos) text.replace(at, zero.size(), zero == "e-0" ? "e-" : "e");
    }
  }
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return text;
}

Argument argument_of(CLI::Option& option) {
  Argument argument;
  for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  if (argument.names.empty()) argument.names.push_back(option.get_name(true));
  argument.help = option.get_description();
  if (option.get_items_expected_max() > 0) {
    argument.value = value_name(option);
    argument.initial = initial_of(option);
  }
  argument.is_repeated = !option.nonpositional() && option.get_items_expected_max() > 1;
  argument.offers = offered(option);
  return argument;
}

/// In the order of the groups' first options; those that all programs have are last.
Section& section_of(Program& program, const Command& command, const std::string& group) {
  const auto found = std::ranges::find(program.sections, group, &Section::title);
  if (found != program.sections.end()) return *found;
  program.sections.push_back({group, group, {}, command.example_of(group)});
  return program.sections.back();
}

Section common_section(Command& command) {
  Section common{std::string(common_options), "Program", {}, command.full_name() + " --help"};
  for (CLI::Option* option : command.get_options()) {
    if (option->nonpositional() && option->get_group() == ungrouped) {
      common.options.push_back(argument_of(*option));
    }
  }
  return common;
}

}  // namespace

Command::Command(const std::string& name, const std::string& text, const std::string& example)
    : CLI::App(text, name), example_(example) {
  set_help_flag("-h,--help", "print this text");
  option_defaults()->always_capture_default();
}

void Command::begin_group(const std::string& title, const std::string& example) {
  examples_[title] = example;
  option_defaults()->group(title);
}

Command& Command::add_command(const std::string& name, const std::string& text,
                              const std::string& example) {
  const auto command = std::make_shared<Command>(name, text, example);
  add_subcommand(command);
  require_subcommand(1);
  commands_.push_back(command.get());
  return *command;
}

std::string Command::full_name() const {
  const CLI::App* parent = get_parent();
  return parent == nullptr ? get_name() : parent->get_name() + ' ' + get_name();
}

std::string Command::example_of(const std::string& group) const {
  const auto found = examples_.find(group);
  return found == examples_.end() ? std::string() : found->second;
}

Command& Command::chosen() {
  const auto found =
      std::ranges::find_if(commands_, [](const Command* each) { return each->parsed(); });
  return found == commands_.end() ? *this : **found;
}

Program program_of(Command& command) {
  Program program;
  program.name = command.get_name();
  program.text = command.get_description();
  program.example = command.example();
  program.starts_another = command.get_prefix_command();
  program.notes = command.get_footer();
  for (CLI::Option* option : command.get_options()) {
    if (!option->nonpositional()) {
      program.arguments.push_back(argument_of(*option));
    } else if (option->get_group() != ungrouped) {
      section_of(program, command, option->get_group()).options.push_back(argument_of(*option));
    }
  }
  program.sections.push_back(common_section(command));
  for (Command* each : command.commands()) program.commands.push_back(program_of(*each));
  return program;
}

CLI::Option* offer(CLI::Option* option, const std::vector<std::string>& words) {
  std::string name(offers_mark);
  for (const std::string& word : words) name += word + ' ';
  return option->check(CLI::Validator([](std::string&) { return std::string(); }, "", name));
}

CLI::Option* restrict(CLI::Option* option, const std::vector<std::string>& words) {
  offer(option, words);
  const auto why_not = [words](const std::string& text) -> std::string {
    if (contains(words, text)) return {};
    return fmt::format("\"{}\" is unknown; choose {}{}", printable(text), options::choice_of(words),
                       did_you_mean(text, {words.begin(), words.end()}));
  };
  option->check(CLI::Validator([why_not](std::string& text) { return why_not(text); }, ""));
  return option->type_name("NAME");
}

void TableOptions::add_to(Command& command, const std::string& example) {
  command.begin_group("Reading", example);
  for (const options::OptionSpec& row : table_.rows()) add(command, row);
}

void TableOptions::add(Command& command, const options::OptionSpec& row) {
  const std::string name = "--" + options::dashed(row.name);
  std::vector<std::string>& texts = texts_.emplace_back();
  if (row.is_internal) return;
  if (row.kind == options::Kind::flag) {
    command.add_flag_callback(
        name, [&texts] { texts = {"true"}; }, row.help);
    return;
  }
  std::vector<std::string> words = row.names;
  words.insert(words.end(), row.offers.begin(), row.offers.end());
  CLI::Option* option = command.add_option(name, texts, full_help(row));
  option->expected(1)->type_name(placeholder(row))->default_str(default_of(row));
  offer(option, words);
}

void TableOptions::take() {
  auto texts = texts_.begin();
  while (texts != texts_.end()) {
    for (const options::OptionSpec& row : table_.rows()) {
      if (!texts->empty())
        table_.set(table_.at(row.name), *texts, "--" + options::dashed(row.name));
      ++texts;
    }
  }
}

}  // namespace tools
