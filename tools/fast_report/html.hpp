// Text in pages. What comes from files cannot become markup or a script.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast_report {

/// For element content and for attributes in double quotes.
std::string escaped(std::string_view text);

/// For a <script type="application/json">: no "<" is left. Bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::json& value);

/// <tag>escaped text</tag>
std::string element(std::string_view tag, std::string_view text);

/// Escaped. Nothing for an empty list.
std::string list(const std::vector<std::string>& items, std::string_view attributes = "");

/// The first line is the heading.
std::string table(const std::vector<std::vector<std::string>>& lines);

/// Random, so that no text that was written before can name it.
std::string nonce();

// Numbers as people read them.

/// "61,706"
std::string grouped(std::int64_t number);
/// "89.1 %" of 0.891.
std::string percent(double share);
/// "0.42 s", "11.3 s", "4 min 5 s", "3 h 12 min"
std::string duration(double seconds);
/// Four significant digits.
std::string short_number(double number);

std::string percent(const std::optional<double>& share);
std::string short_number(const std::optional<double>& number);

/// "1 worker", "2 workers"
std::string counted(std::int64_t number, const std::string& noun);

/// The figures of a page: places in its text, and the data that its script draws there.
class Figures {
 public:
  /// The HTML of a figure with a title and a sentence that says what it shows. `kind` is a function
  /// of page.js; `data` is its argument.
  std::string add(std::string_view kind, nlohmann::json data, std::string_view title,
                  std::string_view about);

  const nlohmann::json& all() const { return figures_; }

 private:
  nlohmann::json figures_ = nlohmann::json::array();
};

}  // namespace fast_report
