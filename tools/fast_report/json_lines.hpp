// Files of one JSON object a line, as a run writes them while it may die at any time.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fast_report {

struct JsonLines {
  std::vector<nlohmann::json> objects;
  int unreadable = 0;  ///< whole lines that are no JSON object
  bool cut = false;    ///< the last line ends within an object
};

/// Reads what can be read. Empty lines count for nothing. Throws fast::Error (data) when the file
/// cannot be opened.
JsonLines read_json_lines(const std::filesystem::path& path);

/// The members of a JSON object, by type. A member of another type, null, and a number that is not
/// finite count as absent.
class Fields {
 public:
  Fields() : object_(nlohmann::json::object()) {}
  explicit Fields(nlohmann::json object) : object_(std::move(object)) {}

  std::optional<double> number(const std::string& name) const;
  /// A number without a fraction that fits.
  std::optional<std::int64_t> integer(const std::string& name) const;
  std::optional<int> rank(const std::string& name) const;
  /// Of a text; of a number its digits.
  std::optional<std::string> text(const std::string& name) const;
  /// The ranks in a list. What is no rank is left out.
  std::vector<int> ranks(const std::string& name) const;
  bool has(const std::string& name) const;
  const nlohmann::json& object() const { return object_; }

 private:
  const nlohmann::json* find(const std::string& name) const;

  nlohmann::json object_;
};

/// Ranks are 0 and above, and a run has no more than this.
inline constexpr std::int64_t most_ranks = 1'000'000;

std::optional<int> as_rank(const nlohmann::json& value);

}  // namespace fast_report
