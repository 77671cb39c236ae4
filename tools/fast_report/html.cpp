#include "fast_report/html.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "core/numbers.hpp"

namespace fast_report {

std::string escaped(std::string_view text) {
  constexpr std::string_view letters = "&<>\"'";
  constexpr std::string_view entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string html;
  for (const char letter : text) {
    const std::size_t at = letters.find(letter);
    html += at == letters.npos ? std::string_view(&letter, 1) : entities[at];
  }
  return html;
}

std::string json_text(const nlohmann::json& value) {
  const std::string json = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size());
  for (const char letter : json)
    text += letter == '<' ? std::string_view("\\u003c") : std::string_view(&letter, 1);
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

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string percent(double share) {
  const double value = 100 * share;
  return fmt::format("{:.{}f} %", value, std::abs(value) < 10 ? 2 : 1);
}

std::string duration(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.{}f} s", seconds, seconds < 9.995 ? 2 : 1);
  const auto whole = fast::saturate<std::int64_t>(std::round(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string short_number(double number) {
  if (std::abs(number) >= 1e4 && std::abs(number) < 1e15) {
    return grouped(static_cast<std::int64_t>(std::llround(number)));
  }
  return fmt::format("{:.4g}", number);
}

std::string percent(const std::optional<double>& share) { return share ? percent(*share) : "–"; }

std::string short_number(const std::optional<double>& number) {
  return number ? short_number(*number) : "–";
}

std::string counted(std::int64_t number, const std::string& noun) {
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

std::string Figures::add(std::string_view kind, nlohmann::json data, std::string_view title,
                         std::string_view about) {
  const std::string id = fmt::format("figure-{}", figures_.size() + 1);
  figures_.push_back({{"id", id}, {"kind", kind}, {"data", std::move(data)}});
  return fmt::format(
      "<section class=\"figure\">\n{}<p class=\"about\">{}</p>\n<figure id=\"{}\"></figure>\n"
      "</section>\n",
      element("h3", title), escaped(about), id);
}

}  // namespace fast_report
