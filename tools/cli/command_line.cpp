#include "cli/command_line.hpp"

#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/core/version.hpp>
#include <map>

#include "core/closest.hpp"

namespace tools {

using namespace fast;
using namespace fast::options;

namespace {

/// "-h,--help"
std::string cli_names(const Row& row) {
  std::string names = "--" + dashed(row.name);
  for (const std::string& alias : row.aliases) {
    names += (alias.size() == 1 ? ",-" : ",--") + dashed(alias);
  }
  return names;
}

/// Takes values up to the next option, or only the next one.
enum class Lists { greedy, one_at_a_time };

CLI::Option* add(CLI::App& app, const Row& row, Lists lists) {
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
  for (const Row& row : table.rows()) {
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
  for (const Row& row : table.rows()) {
    if (!row.is_internal) rows.emplace(add(app, row, lists), row.name);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    fail(ErrorKind::argument, "{}: {}; --help lists the options", program, printable(error.what()));
  }
  others = app.remaining();
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

/// Of a word where a subcommand is required.
std::string unknown_command(const Command& program, const std::string& word) {
  std::vector<std::string> names;
  for (const Command* command : program.commands()) names.push_back(command->get_name());
  return fmt::format("there is no subcommand \"{}\"; choose {}{}", printable(word),
                     choice_of(names), did_you_mean(word, {names.begin(), names.end()}));
}

/// What neither the program nor its subcommand knows comes before what is missing.
std::string message_of(const Command& program, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = program.remaining(true);
  const bool needs_command = !program.commands().empty() && program.get_subcommands().empty();
  if (needs_command && !unknown.empty() && !unknown.front().starts_with("-")) {
    return unknown_command(program, unknown.front());
  }
  for (const std::string& argument : unknown) {
    if (argument.starts_with("-")) return unknown_option(program, argument);
  }
  return fmt::format("{}; --help lists the options", printable(error.what()));
}

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
    fmt::print(stderr, "{}: {}\n", program.get_name(), message_of(program, error));
    return error.get_exit_code();
  }
}

}  // namespace tools
