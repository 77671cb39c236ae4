#include "options/value.hpp"

namespace fast::options {

std::string choice_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string quotient_text(double product, double factor) {
  constexpr int most_digits = 17;
  std::string text;
  for (int digits = 1; digits <= most_digits; ++digits) {
    text = fmt::format("{:.{}g}", product / factor, digits);
    double read = 0;
    if (reads(text, read) && read * factor == product) return fmt::format("{}", read);
  }
  return text;
}

Value<double> scaled(const Range& range, double factor) {
  Value<double> value = number<double>(range);
  value.parse = [parse = value.parse, factor](std::string_view text, double& into) {
    double found = 0;
    const Fit fit = parse(text, found);
    if (fit != Fit::good) return fit;
    if (!std::isfinite(found * factor)) return Fit::out_of_range;
    into = found * factor;
    return fit;
  };
  value.format = [factor](const double& from) { return quotient_text(from, factor); };
  value.holds = [holds = value.holds, factor](const double& from) { return holds(from / factor); };
  return value;
}

Value<Seconds> seconds(const Range& range) {
  const Value<double> count = number<double>(range);
  return {.kind = count.kind,
          .required = count.required + " of seconds",
          .parse =
              [parse = count.parse](std::string_view text, Seconds& into) {
                double found = 0;
                const Fit fit = parse(text, found);
                if (fit == Fit::good) into = Seconds(found);
                return fit;
              },
          .format = [](const Seconds& from) { return fmt::format("{}", from.count()); },
          .holds = [holds = count.holds](const Seconds& from) { return holds(from.count()); }};
}

Value<std::string> choice(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> choices;
  for (const std::string& name : names) choices.emplace_back(name, name);
  Value<std::string> value = choice(choices);
  value.format = [](const std::string& from) { return from; };
  return value;
}

Value<bool> flag() {
  return {.kind = Kind::flag,
          .required = "true or false",
          .parse =
              [](std::string_view text, bool& into) {
                if (text != "true" && text != "1" && text != "false" && text != "0") {
                  return Fit::unreadable;
                }
                into = text == "true" || text == "1";
                return Fit::good;
              },
          .format = [](const bool& from) { return from ? "true" : "false"; }};
}

Value<std::string> text() {
  return {.required = "a text",
          .parse =
              [](std::string_view text, std::string& into) {
                into = text;
                return Fit::good;
              },
          .format = [](const std::string& from) { return from; }};
}

Value<std::optional<std::filesystem::path>> path() {
  using Path = std::optional<std::filesystem::path>;
  return {.required = "a path",
          .parse =
              [](std::string_view text, Path& into) {
                into = Path(text);
                return text.empty() ? Fit::unreadable : Fit::good;
              },
          .format = [](const Path& from) -> std::optional<std::string> {
            if (!from) return std::nullopt;
            return from->string();
          }};
}

}  // namespace fast::options
