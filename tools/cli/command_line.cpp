#include "cli/command_line.hpp"

#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/core/version.hpp>
#include <map>

#include "cli/program.hpp"
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

std::string unknown_option(const CLI::App& app, const std::string& argument) {
  std::vector<std::string> names = names_of(app);
  for (const CLI::App* command : app.get_subcommands()) {
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

/// What neither the program nor its subcommand knows comes before what is missing.
std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  for (const std::string& argument : app.remaining(true)) {
    if (argument.starts_with("-")) return unknown_option(app, argument);
  }
  return fmt::format("{}; --help lists the options", printable(error.what()));
}

}  // namespace

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), version()));
  if (const auto page = requested_page([&app] { return program_of(app); }, argc, argv)) {
    fmt::print("{}", *page);
    return 0;
  }
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& text) {
    return app.exit(text);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), message_of(app, error));
    return error.get_exit_code();
  }
}

}  // namespace tools
