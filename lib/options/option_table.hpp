// The table of a run's options. An option is one member of a struct and one row here. Command line,
// configuration file, C interface, start-up check and documentation are made from the rows.
#pragma once

#include <functional>
#include <initializer_list>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "options/value.hpp"

namespace fast::options {

/// What stands among OptionSpec::offers for the names of files and of directories.
inline constexpr std::string_view files = "<file>", directories = "<directory>";

/// A condition under which an option has an effect.
struct Need {
  std::function<bool()> met;
  std::string why;  ///< why the option has no effect otherwise, and what to do
};

/// One option, bound to its member.
struct OptionSpec {
  std::string name;   ///< "suspect_after"
  std::string group;  ///< "faults"
  std::string help;
  Kind kind = Kind::text;
  std::string required;  ///< see Value
  std::vector<std::string> names{};
  std::vector<std::string> aliases{};
  std::vector<std::string>
      offers{};                  ///< what a shell completes, besides `names`; others are allowed
  bool must_agree = false;       ///< between the workers of a run
  bool is_internal = false;      ///< for programs: neither on command lines nor in files
  bool on_command_line = false;  ///< there only, not in files
  std::vector<Need> needs{};
  std::string given_at{};  ///< where the value was given: "--staleness"; empty: the default stands

  std::function<Fit(const std::vector<std::string>& texts)> read;
  std::function<std::vector<std::string>()> values;  ///< none: not set
  std::function<bool()> holds;                       ///< the present value is allowed
  std::vector<std::string> initial{};                ///< the default's values()

  OptionSpec& also(std::string_view alias) { return aliases.emplace_back(alias), *this; }
  OptionSpec& offer(std::vector<std::string> words) { return offers = std::move(words), *this; }
  OptionSpec& agreed() { return must_agree = true, *this; }
  OptionSpec& internal() { return is_internal = true, *this; }
  OptionSpec& command_line_only() { return on_command_line = true, *this; }
  OptionSpec& only_if(std::function<bool()> met, std::string_view why) {
    return needs.push_back({std::move(met), std::string(why)}), *this;
  }
  /// The values in one text; empty when there are none.
  std::string text() const;
};

/// Rows refer to members of an object that outlives the table and stays in place; the members have
/// their defaults when they are added.
class OptionTable {
 public:
  OptionTable() = default;
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  /// The group of the rows that follow.
  void group(std::string_view name) { group_ = name; }

  template <class T>
  OptionSpec& add(std::string_view name, T& member, const Value<T>& value, std::string_view help) {
    OptionSpec row = row_of(name, help, value);
    row.read = [&member, parse = value.parse](const std::vector<std::string>& texts) {
      return parse(texts.back(), member);
    };
    row.values = [&member, format = value.format] {
      const std::optional<std::string> text = format(member);
      return text ? std::vector<std::string>{*text} : std::vector<std::string>();
    };
    row.holds = [&member, holds = value.holds] { return holds(member); };
    return add(std::move(row));
  }
  /// An option that may be given several times.
  OptionSpec& add(std::string_view name, std::vector<std::string>& member, std::string_view help);
  OptionSpec& add(std::string_view name, bool& member, std::string_view help) {
    return add(name, member, flag(), help);
  }

  const std::list<OptionSpec>& rows() const { return rows_; }
  /// By a name or an alias; - and _ are the same letter. Null: there is none.
  OptionSpec* find(std::string_view name);
  /// A row that is there.
  OptionSpec& at(std::string_view name);
  /// Names and aliases of all rows.
  std::vector<std::string_view> names() const;

  /// Sets the member. Throws Error(argument), which begins with `where`, for a value that is not
  /// allowed.
  void set(OptionSpec& row, const std::vector<std::string>& texts, const std::string& where);
  /// Throws Error(argument) for an option that was given and has no effect.
  void check_needs() const;
  /// Throws Error(argument), which begins with `who`, for a member that has a value that is not
  /// allowed.
  void check_values(std::string_view who) const;
  /// "staleness 0", a line for each row that must agree.
  std::string agreement() const;

 private:
  template <class T>
  OptionSpec row_of(std::string_view name, std::string_view help, const Value<T>& value) const {
    OptionSpec row;
    row.name = name;
    row.group = group_;
    row.help = help;
    row.kind = value.kind;
    row.required = value.required;
    row.names = value.names;
    return row;
  }
  OptionSpec& add(OptionSpec row);

  std::string group_;
  std::list<OptionSpec> rows_;  // places stay
};

/// "suspect-after", as command lines and configuration files have it.
std::string dashed(std::string_view name);

}  // namespace fast::options
