#include "fast_report/html.hpp"

#include <fmt/format.h>

#include <random>

namespace fast_report {

namespace {

std::string_view entity(char letter) {
  switch (letter) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char letter : text) {
    const std::string_view replacement = entity(letter);
    if (replacement.empty()) {
      html += letter;
    } else {
      html += replacement;
    }
  }
  return html;
}

std::string json_text(const nlohmann::json& value) {
  const std::string json = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size());
  for (const char letter : json) {
    if (letter == '<') {
      text += "\\u003c";
    } else {
      text += letter;
    }
  }
  return text;
}

std::string element(std::string_view tag, std::string_view text) {
  return fmt::format("<{}>{}</{}>\n", tag, escaped(text), tag);
}

std::string list(const std::vector<std::string>& items, std::string_view attributes) {
  if (items.empty()) return "";
  std::string html = fmt::format("<ul{}>\n", attributes);
  for (const std::string& item : items) html += element("li", item);
  return html + "</ul>\n";
}

std::string table(const std::vector<std::vector<std::string>>& lines) {
  std::string html = "<table>\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    html += "<tr>";
    for (const std::string& cell : lines[i]) html += element(i == 0 ? "th" : "td", cell);
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace fast_report
