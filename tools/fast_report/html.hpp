// Text in pages. What comes from files cannot become markup or a script.
#pragma once

#include <nlohmann/json.hpp>
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

}  // namespace fast_report
