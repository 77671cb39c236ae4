#include "cli/config_file.hpp"

#include <fmt/ranges.h>

#include <fast/core/error.hpp>
#include <fast/core/version.hpp>
#include <map>

#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/toml.hpp"

namespace tools {

using namespace fast;
using namespace fast::options;

namespace {

using Texts = std::vector<std::string>;

/// In the order of Kind.
constexpr const char* required_types[] = {"true or false",
                                          "a whole number",
                                          "a number",
                                          "a string",
                                          "a whole number or a string",
                                          "a number or a string",
                                          "a list of strings"};

bool is_integer(const std::string& text) {
  std::int64_t value = 0;
  return reads(text, value);
}

bool is_number(const std::string& text) {
  double value = 0;
  return reads(text, value) && std::isfinite(value);
}

/// TOML's whole numbers end at 2^63 - 1. Larger ones are strings.
bool is_large_integer(const std::string& text) {
  std::uint64_t value = 0;
  return !is_integer(text) && reads(text, value);
}

std::optional<std::string> text_of(const toml::node& node, Kind kind) {
  const bool real = kind == Kind::number || kind == Kind::mixed_number;
  const bool numeric = real || kind == Kind::integer || kind == Kind::mixed;
  if (const auto* flag = node.as_boolean(); flag != nullptr && kind == Kind::flag) {
    return flag->get() ? "true" : "false";
  }
  if (const auto* whole = node.as_integer(); whole != nullptr && numeric) {
    return fmt::format("{}", whole->get());
  }
  if (const auto* number = node.as_floating_point(); number != nullptr) {
    const bool infinite = kind == Kind::mixed && std::isinf(number->get());
    if (real || infinite) return fmt::format("{}", number->get());
  }
  if (const auto* text = node.as_string(); text != nullptr) {
    const bool fits = kind == Kind::text || kind == Kind::mixed || kind == Kind::mixed_number ||
                      (kind == Kind::integer && is_large_integer(text->get()));
    if (fits) return text->get();
  }
  return std::nullopt;
}

std::optional<Texts> texts_of(const toml::node& node, Kind kind) {
  Texts texts;
  if (kind != Kind::list) {
    const auto text = text_of(node, kind);
    return text ? std::optional<Texts>({*text}) : std::nullopt;
  }
  if (!node.is_array()) return std::nullopt;
  for (const toml::node& entry : *node.as_array()) {
    const auto text = text_of(entry, Kind::text);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

/// Those that a file may hold.
std::vector<std::string> names_in_files(const OptionTable& table) {
  std::vector<std::string> names;
  for (const OptionSpec& row : table.rows()) {
    if (!row.is_internal && !row.on_command_line) names.push_back(dashed(row.name));
  }
  return names;
}

OptionSpec& row_named(OptionTable& table, std::string_view key, const std::string& where) {
  OptionSpec* row = table.find(key);
  if (row == nullptr || row->is_internal) {
    const auto names = names_in_files(table);
    fail(ErrorKind::argument, "{}: there is no option \"{}\"; --help lists the options{}", where,
         printable(key), did_you_mean(key, {names.begin(), names.end()}));
  }
  require(!row->on_command_line, ErrorKind::argument,
          "{}: \"{}\" is an option of the command line only; leave it out of the file", where, key);
  return *row;
}

void set(OptionTable& table, std::string_view key, const toml::node& node,
         const std::string& where) {
  OptionSpec& row = row_named(table, key, where);
  const std::string name = fmt::format("{}: {}", where, dashed(key));
  const auto texts = texts_of(node, row.kind);
  require(texts.has_value(), ErrorKind::argument, "{}: a {} was found; {} is required", name,
          toml_type(node), required_types[static_cast<std::size_t>(row.kind)]);
  table.set(row, *texts, name);
  if (row.values() == row.initial) row.given_at.clear();
}

/// In double quotes.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\u{:04X}", static_cast<int>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string toml_value(Kind kind, const Texts& texts) {
  if (kind == Kind::list) {
    Texts entries;
    for (const std::string& text : texts) entries.push_back(quoted(text));
    return fmt::format("[{}]", fmt::join(entries, ", "));
  }
  const std::string& text = texts.front();
  const bool bare = kind == Kind::flag || kind == Kind::number ||
                    ((kind == Kind::integer || kind == Kind::mixed) && is_integer(text)) ||
                    (kind == Kind::mixed_number && is_number(text));
  return bare ? text : quoted(text);
}

std::string comment(const std::string& text) {
  std::string result = "# " + wrapped(text, 2);
  for (std::size_t at = 0; (at = result.find("\n  ", at)) != std::string::npos; at += 3) {
    result.replace(at, 3, "\n# ");
  }
  return result + '\n';
}

/// "epochs = 5", or a comment with the value that stands for none.
std::string line_of(const OptionSpec& row, const OptionSpec& resolved) {
  const Texts values = row.values(), stand_in = resolved.values();
  const bool is_set = row.kind == Kind::list || !values.empty();
  std::string value;
  if (is_set) {
    value = toml_value(row.kind, values);
  } else if (!stand_in.empty()) {
    value = toml_value(row.kind, stand_in);
  }
  return fmt::format("{}{} = {}\n", is_set ? "" : "# ", dashed(row.name), value);
}

}  // namespace

void parse_config(OptionTable& table, const std::string& text, const std::string& path) {
  const toml::table file = toml_table(text, {path, ErrorKind::argument, "--config"});
  std::map<const OptionSpec*, std::string> found;
  for (const auto& [key, node] : file) {
    const std::string where = fmt::format("{}:{}", printable(path), key.source().begin.line);
    const OptionSpec* row = &row_named(table, key.str(), where);
    const auto [first, is_new] = found.emplace(row, key.str());
    require(is_new, ErrorKind::argument, "{}: \"{}\" and \"{}\" are one option; leave one out",
            where, printable(first->second), printable(key.str()));
    set(table, key.str(), node, where);
  }
}

void read_config(OptionTable& table, const std::string& path) {
  parse_config(table, text_of_file(path, "--config", "give a TOML file of options"), path);
}

std::string config_text(const OptionTable& table, const OptionTable& resolved,
                        const std::vector<Group>& groups, const std::string& program) {
  std::string text =
      comment(fmt::format("Options of {0} {1}: {0} --config FILE. Options of the "
                          "command line win. A comment \"name = value\" is an "
                          "option that is not set, and the value of this run.",
                          program, version()));
  for (const Group& group : groups) {
    std::string lines;
    auto other = resolved.rows().begin();
    for (const OptionSpec& row : table.rows()) {
      const OptionSpec& stands = *other++;
      if (row.group != group.name || row.is_internal || row.on_command_line) continue;
      lines += '\n' + comment(full_help(row)) + line_of(row, stands);
    }
    if (!lines.empty()) text += fmt::format("\n# ---- {} ----\n{}", group.title, lines);
  }
  toml_table(text, {"the file", ErrorKind::argument, "--write-config"});  // refuses what is no text
  return text;
}

}  // namespace tools
