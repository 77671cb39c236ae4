#include "cli/command_line.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/version.hpp>
#include <map>
#include <string_view>

#include "cli/exit_status.hpp"
#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/registry.hpp"

namespace tools {

using namespace fast;
using namespace fast::options;

namespace {

/// "-h,--help"
std::string cli_names(const OptionSpec& row) {
  std::string names = "--" + dashed(row.name);
  for (const std::string& alias : row.aliases) {
    names += (alias.size() == 1 ? ",-" : ",--") + dashed(alias);
  }
  return names;
}

/// Takes values up to the next option, or only the next one.
enum class Lists { greedy, one_at_a_time };

CLI::Option* add(CLI::App& app, const OptionSpec& row, Lists lists) {
  if (row.kind == Kind::flag) return app.add_flag(cli_names(row));
  CLI::Option* option = app.add_option(
      cli_names(row), [](const CLI::results_t&) { return true; }, "");
  option->type_name("")->expected(1);
  if (row.kind == Kind::list) {
    option->expected(1, lists == Lists::greedy ? CLI::detail::expected_max_vector_size : 1)
        ->allow_extra_args(lists == Lists::greedy)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  return option;
}

/// "; did you mean "--epochs"?", for "--epoch=3" too.
std::string suggestion(const std::string& argument, const std::vector<std::string>& known) {
  if (!argument.starts_with("-")) return {};
  const std::vector<std::string_view> names(known.begin(), known.end());
  return did_you_mean(argument.substr(0, argument.find('=')), names);
}

std::vector<std::string> names_of(const OptionTable& table) {
  std::vector<std::string> names;
  for (const OptionSpec& row : table.rows()) {
    if (row.is_internal) continue;
    names.push_back("--" + dashed(row.name));
    for (const std::string& alias : row.aliases) names.push_back("--" + dashed(alias));
  }
  return names;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown_among(const std::string& argument, const std::vector<std::string>& known) {
  return fmt::format("there is no option \"{}\"; --help lists the options{}", printable(argument),
                     suggestion(argument, known));
}

/// In place of "--epochs: 1 required INT missing" and "--epochs: At Most 1 required but received
/// 2".
std::string mismatch(const std::string& text) {
  const std::string name = text.substr(0, text.find(": "));
  if (text.ends_with(" missing")) return name + ": a value is missing";
  const std::size_t at = text.rfind(' ');
  if (text.find(": At Most 1 required") == std::string::npos) return text;
  return fmt::format("{}: one is allowed,{} are given", name, text.substr(at));
}

/// "-help", of which CLI11 takes "-h" and leaves "-elp".
std::vector<std::string> as_typed(std::vector<std::string> left, int argc,
                                  const char* const* argv) {
  const std::vector<std::string> typed(argv + 1, argv + argc);
  for (std::string& each : left) {
    if (contains(typed, each)) continue;
    const auto whole = std::ranges::find_if(typed, [&](const std::string& word) {
      return word.starts_with('-') && word.ends_with(each.substr(1));
    });
    if (whole != typed.end()) each = *whole;
  }
  return left;
}

}  // namespace

std::string unknown_option(const Command& program, const std::string& argument) {
  std::vector<std::string> names = names_of(program);
  for (const CLI::App* command : program.get_subcommands()) {
    const auto more = names_of(*command);
    names.insert(names.end(), more.begin(), more.end());
  }
  return unknown_among(argument, names);
}

namespace {

std::vector<GivenOption> parse(OptionTable& table, const std::string& program, int argc,
                               const char* const* argv, Lists lists,
                               std::vector<std::string>& others) {
  CLI::App app("", program);
  app.set_help_flag();
  app.allow_extras();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::map<const CLI::Option*, std::string> rows;
  for (const OptionSpec& row : table.rows()) {
    if (!row.is_internal) rows.emplace(add(app, row, lists), row.name);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ArgumentMismatch& error) {
    fail(ErrorKind::argument, "{}: {}; --help lists the options", program,
         printable(mismatch(error.what())));
  } catch (const CLI::ParseError& error) {
    fail(ErrorKind::argument, "{}: {}; --help lists the options", program, printable(error.what()));
  }
  others = as_typed(app.remaining(), argc, argv);
  std::vector<GivenOption> given;
  for (const auto& [option, name] : rows) {
    if (option->count() > 0) given.push_back({&table.at(name), option->results()});
  }
  return given;
}

}  // namespace

std::vector<GivenOption> parse_command_line(OptionTable& table, const std::string& program,
                                            int argc, const char* const* argv) {
  std::vector<std::string> unknown;
  auto given = parse(table, program, argc, argv, Lists::greedy, unknown);
  if (!unknown.empty()) {
    fail(ErrorKind::argument, "{}: {}", program, unknown_among(unknown.front(), names_of(table)));
  }
  return given;
}

std::vector<GivenOption> parse_command_line(OptionTable& table, const std::string& program,
                                            int argc, const char* const* argv,
                                            std::vector<std::string>& others) {
  auto given = parse(table, program, argc, argv, Lists::one_at_a_time, others);
  for (const std::string& other : others) {
    if (other.size() < 2 || !other.starts_with('-')) continue;
    fail(ErrorKind::argument, "{}: {}", program, unknown_among(other, names_of(table)));
  }
  return given;
}

void set(OptionTable& table, const std::vector<GivenOption>& options) {
  for (const GivenOption& option : options) {
    table.set(*option.row, option.texts, "--" + dashed(option.row->name));
  }
}

namespace {

std::vector<std::string> command_names(const Command& program) {
  std::vector<std::string> names;
  for (const Command* command : program.commands()) names.push_back(command->get_name());
  return names;
}

/// Of a word where a subcommand is required.
std::string unknown_command(const Command& program, const std::string& word) {
  const std::vector<std::string> names = command_names(program);
  return fmt::format("there is no subcommand \"{}\"; choose {}{}", printable(word),
                     choice_of(names), did_you_mean(word, {names.begin(), names.end()}));
}

/// Of the program or its subcommand.
const CLI::Option* option_of(const Command& program, const std::string& name) {
  const CLI::Option* option = program.get_option_no_throw(name);
  for (const CLI::App* command : program.get_subcommands()) {
    if (option == nullptr) option = command->get_option_no_throw(name);
  }
  return option;
}

/// What an option of CLI11 takes.
std::string required_by(const CLI::Option* option) {
  if (option == nullptr) return "another value";
  if (option->get_items_expected_max() == 0) return "true or false";
  return option->get_type_name().starts_with("FLOAT") ? "a number" : "a whole number";
}

/// In place of "Could not convert: --epochs = x".
std::string conversion(const Command& program, const std::string& text) {
  constexpr std::string_view begin = "Could not convert: ";
  const std::size_t equals = text.find(" = ");
  if (!text.starts_with(begin) || equals == std::string::npos) return text;
  const std::string name = text.substr(begin.size(), equals - begin.size());
  return fmt::format("{}: \"{}\"; {} is required", name, text.substr(equals + 3),
                     required_by(option_of(program, name)));
}

/// In place of "run is required", of an argument without a name: what it is.
std::string missing(const Command& program, const std::string& text) {
  constexpr std::string_view end = " is required";
  if (!text.ends_with(end)) return text;
  const CLI::Option* option = option_of(program, text.substr(0, text.size() - end.size()));
  if (option == nullptr || option->nonpositional()) return text;
  const std::string all = option->get_description(), what = all.substr(0, all.find_first_of(";("));
  return "give " + what.substr(0, what.find_last_not_of(' ') + 1);
}

/// What CLI11 says in terms of its own, in those of users.
std::string plain(const Command& program, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return mismatch(text);
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    return conversion(program, text);
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return missing(program, text);
  return text;
}

/// What nobody has taken. Behind its first word, a program that starts another one has the options
/// of that one.
std::vector<std::string> unknown_of(const Command& program) {
  std::vector<std::string> unknown = program.remaining(true);
  if (program.get_prefix_command() && unknown.size() > 1) unknown.resize(1);
  return unknown;
}

bool is_option(const std::string& argument) {
  return argument.starts_with("-") && argument != "--";
}

/// A subcommand that is missing or unknown; empty if there is one, or none is required.
std::string no_command(const Command& program, const std::vector<std::string>& unknown) {
  if (program.commands().empty() || !program.get_subcommands().empty()) return {};
  if (unknown.empty()) {
    return fmt::format("a subcommand is required; choose {}", choice_of(command_names(program)));
  }
  return is_option(unknown.front()) ? std::string() : unknown_command(program, unknown.front());
}

}  // namespace

std::string refusal(const Command& program, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = unknown_of(program);
  if (const std::string message = no_command(program, unknown); !message.empty()) return message;
  const auto option = std::ranges::find_if(unknown, is_option);
  if (option != unknown.end()) return unknown_option(program, *option);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unknown.empty()) {
    return fmt::format("the argument \"{}\" is not expected; --help lists the arguments",
                       printable(unknown.front()));
  }
  return printable(plain(program, error)) + "; --help lists the options";
}

namespace {

/// That the only argument asks for.
std::optional<std::string> page_of(Command& program, int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help-markdown") {
    return program_markdown(program_of(program));
  }
  return requested_page([&program] { return program_of(program); }, argc, argv);
}

}  // namespace

std::optional<int> parse(Command& program, int argc, char** argv) {
  program.set_version_flag("--version", fmt::format("{} {}", program.get_name(), version()))
      ->description("print the version")
      ->group("Options");
  if (const auto page = page_of(program, argc, argv)) {
    fmt::print("{}", *page);
    return 0;
  }
  try {
    program.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    Command& command = program.chosen();
    fmt::print("{}", help_text(program_of(command), command.full_name()));
    return 0;
  } catch (const CLI::Success& text) {
    return program.exit(text);
  } catch (const CLI::ParseError& error) {
    fast::say("{}: {}\n", program.get_name(), refusal(program, error));
    return wrong_usage;
  }
}

}  // namespace tools
