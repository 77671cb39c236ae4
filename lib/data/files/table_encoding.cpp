#include "data/files/table_encoding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/files/csv_table.hpp"

namespace fast::data {
namespace {

constexpr std::string_view missing_end = " is missing";

std::optional<std::size_t> place_of(std::string_view name,
                                    const std::vector<std::string>& columns) {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

}  // namespace

std::string category_feature(std::string_view column, std::string_view category) {
  return fmt::format("{}={}", column, category);
}

std::string missing_feature(std::string_view column) {
  return fmt::format("{}{}", column, missing_end);
}

std::optional<FeatureCode> code_of(std::string_view feature,
                                   const std::vector<std::string>& columns) {
  using Kind = FeatureCode::Kind;
  if (const auto column = place_of(feature, columns)) return FeatureCode{*column, Kind::number};
  if (feature.ends_with(missing_end)) {
    const std::string_view name = feature.substr(0, feature.size() - missing_end.size());
    if (const auto column = place_of(name, columns)) return FeatureCode{*column, Kind::missing};
  }
  for (std::size_t at = feature.rfind('='); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : feature.rfind('=', at - 1)) {
    if (const auto column = place_of(feature.substr(0, at), columns))
      return FeatureCode{*column, Kind::category, std::string(feature.substr(at + 1))};
  }
  return std::nullopt;
}

std::string column_in(std::string_view feature) {
  if (feature.ends_with(missing_end)) feature.remove_suffix(missing_end.size());
  return std::string(feature.substr(0, feature.find('=')));
}

std::string category_in(std::string_view field) {
  double number = 0;
  if (read_number(field, number)) return fmt::format("{}", number);
  return std::string(trimmed(field));
}

}  // namespace fast::data
