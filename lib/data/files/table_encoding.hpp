// Which columns of a table its features come from, by the features' names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

/// How a feature comes from the field of a row. The name of the feature says it, so that the names
/// of a model's features are its whole encoding.
struct FeatureCode {
  enum class Kind {
    number,    ///< "age": the field as a number
    category,  ///< "color=red": 1 where the field is that text, else 0
    missing    ///< "age is missing": 1 where the field is empty, NA or the like, else 0
  };
  std::size_t column = 0;
  Kind kind = Kind::number;
  std::string category = {};
};

std::string category_feature(std::string_view column, std::string_view category);
std::string missing_feature(std::string_view column);

/// Nothing if the feature comes from none of these columns. A column of the same name goes first,
/// then the longest one.
std::optional<FeatureCode> code_of(std::string_view feature,
                                   const std::vector<std::string>& columns);

/// "color" of "color=red" and of "color is missing".
std::string column_in(std::string_view feature);

/// The text of a category: without the spaces around it; "1" of "1.0" and "01".
std::string category_in(std::string_view field);

}  // namespace fast::data
