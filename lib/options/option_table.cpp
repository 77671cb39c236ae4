#include "options/option_table.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>

#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/text.hpp"

namespace fast::options {
namespace {

bool is_named(const OptionSpec& row, const std::string& name) {
  return row.name == name || contains(row.aliases, name);
}

/// Why such a text is not a value of the row.
std::string why_not(const OptionSpec& row, const std::string& text, Fit fit) {
  if (!row.names.empty()) {
    const std::vector<std::string_view> names(row.names.begin(), row.names.end());
    return fmt::format("\"{}\" is unknown; choose {}{}", printable(text), row.required,
                       did_you_mean(text, names));
  }
  const char* quote = fit == Fit::out_of_range ? "" : "\"";
  return fmt::format("{0}{1}{0}; {2} is required", quote, printable(text), row.required);
}

}  // namespace

std::string dashed(std::string_view name) {
  std::string result(name);
  std::ranges::replace(result, '_', '-');
  return result;
}

std::string OptionSpec::text() const { return fmt::format("{}", fmt::join(values(), " ")); }

OptionSpec& OptionTable::add(OptionSpec row) {
  row.initial = row.values();
  return rows_.emplace_back(std::move(row));
}

OptionSpec& OptionTable::add(std::string_view name, std::vector<std::string>& member,
                             std::string_view help) {
  OptionSpec row = row_of(name, help, options::text());
  row.kind = Kind::list;
  row.required = "a list of texts";
  row.read = [&member](const std::vector<std::string>& texts) { return member = texts, Fit::good; };
  row.values = [&member] { return member; };
  row.holds = [] { return true; };
  return add(std::move(row));
}

OptionSpec* OptionTable::find(std::string_view name) {
  const std::string wanted = with_underscores(name);
  const auto found =
      std::ranges::find_if(rows_, [&](const OptionSpec& row) { return is_named(row, wanted); });
  return found == rows_.end() ? nullptr : &*found;
}

OptionSpec& OptionTable::at(std::string_view name) {
  OptionSpec* row = find(name);
  require(row != nullptr, ErrorKind::internal, "options: there is no row \"{}\"", name);
  return *row;
}

std::vector<std::string_view> OptionTable::names() const {
  std::vector<std::string_view> names;
  for (const OptionSpec& row : rows_) {
    names.push_back(row.name);
    names.insert(names.end(), row.aliases.begin(), row.aliases.end());
  }
  return names;
}

void OptionTable::set(OptionSpec& row, const std::vector<std::string>& texts,
                      const std::string& where) {
  Fit fit = Fit::good;
  try {
    fit = row.read(texts);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", where, error.what());
  }
  if (fit != Fit::good) {
    fail(ErrorKind::argument, "{}: {}", where, why_not(row, texts.back(), fit));
  }
  row.given_at = where;
}

void OptionTable::check_needs() const {
  for (const OptionSpec& row : rows_) {
    if (row.given_at.empty()) continue;
    for (const Need& need : row.needs) {
      require(need.met(), ErrorKind::argument, "{}: without effect in this run: {}", row.given_at,
              need.why);
    }
  }
}

void OptionTable::check_values(std::string_view who) const {
  for (const OptionSpec& row : rows_) {
    require(row.holds(), ErrorKind::argument, "{}: {} {}; {} is required", who, row.name,
            row.text(), row.required);
  }
}

std::string OptionTable::agreement() const {
  std::string lines;
  for (const OptionSpec& row : rows_) {
    if (row.must_agree) lines += fmt::format("{} {}\n", row.name, row.text());
  }
  return lines;
}

}  // namespace fast::options
