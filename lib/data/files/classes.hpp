// Which numbers and which names are class labels.
#pragma once

#include <cmath>
#include <cstdint>
#include <fast/core/error.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/message.hpp"
#include "data/files/table_encoding.hpp"

namespace fast::data {

constexpr double most_classes = 1 << 24;
/// TargetKind::automatic takes larger numbers for targets.
constexpr double most_automatic_classes = 1000;

/// A whole number from 0 on, below `limit`.
inline bool is_class(double number, double limit = most_classes) {
  return number >= 0 && number < limit && number == std::floor(number);
}

/// Finds names in a list: of the model, or of the training part. The list outlives it.
class ClassPlaces {
 public:
  ClassPlaces(const std::vector<std::string>& names, const char* whose)
      : whose_(whose), count_(names.size()) {
    for (std::size_t i = 0; i < names.size(); ++i)
      places_.emplace(names[i], static_cast<std::int32_t>(i));
  }
  /// 1.0 is the class "1". Throws Error(data), with where() it stands, for another name.
  template <class Where>
  std::int32_t of(const std::string& text, const Where& where) const {
    auto place = places_.find(text);
    if (place == places_.end()) place = places_.find(category_in(text));
    if (place == places_.end())
      fail(ErrorKind::data, "{}: class \"{}\" is not among the {} classes of {}", where(),
           printable(text), count_, whose_);
    return place->second;
  }

 private:
  const char* whose_;
  std::size_t count_;
  std::unordered_map<std::string_view, std::int32_t> places_;
};

}  // namespace fast::data
