// Tables of what users choose by its name.
#pragma once

#include <fast/core/error.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast {

// Suggestions for names that are misspelled.

/// The name that `wanted` probably means: the one with the fewest letters inserted, removed,
/// replaced or swapped, at most a third of them, or else the first that begins with `wanted`.
std::optional<std::string_view> closest(std::string_view wanted,
                                        const std::vector<std::string_view>& names);

/// "; did you mean \"ring\"?", or nothing when no name is close.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string_view>& names);

/// An entry that has nothing besides its name and a value.
template <class T>
struct Named {
  std::string_view name;
  T value;
};

/// A second name of an entry.
using Alias = Named<std::string_view>;

/// Throws an Error. `text` has a place for `name` and a place for the list of all names. The one
/// that was probably meant, a name or an alias, follows.
[[noreturn]] void fail_unknown(ErrorKind kind, std::string_view text, std::string_view name,
                               std::vector<std::string_view> names, std::span<const Alias> aliases);

/// Entries in the order of the documentation. An Entry has a member `name`.
template <class Entry>
struct Registry {
  std::span<const Entry> entries;
  std::string_view unknown = {};  ///< the text of fail_unknown()
  std::span<const Alias> aliases = {};
  ErrorKind kind = ErrorKind::argument;

  std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    for (const Entry& entry : entries) all.push_back(entry.name);
    return all;
  }

  /// Null: no entry has this name or alias.
  const Entry* find(std::string_view name) const {
    for (const Alias& alias : aliases) {
      if (alias.name == name) name = alias.value;
    }
    for (const Entry& entry : entries) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }

  const Entry& at(std::string_view name) const {
    const Entry* found = find(name);
    if (found == nullptr) fail(name);
    return *found;
  }

  /// The error of at() for such a name.
  [[noreturn]] void fail(std::string_view name) const {
    fail_unknown(kind, unknown, name, names(), aliases);
  }
};
template <class Entry, std::size_t count, class... More>
Registry(const Entry (&)[count], More...) -> Registry<Entry>;

}  // namespace fast
