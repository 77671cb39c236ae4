// Reads a rule's options from texts.
#pragma once

#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>

#include "core/closest.hpp"
#include "core/text.hpp"

namespace fast::algorithm {

class ParameterReader {
 public:
  ParameterReader(std::string_view rule, const Parameters& given) : rule_(rule), given_(given) {}

  /// Leaves `value` when none was given.
  template <class T>
  void read(std::string_view key, T& value) {
    known_.push_back(key);
    const auto found = given_.find(key);
    if (found != given_.end()) parse(found->first, found->second, value);
  }

  void require_all_known() const {
    for (const auto& [key, value] : given_) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      require(!known_.empty(), ErrorKind::argument,
              "algorithm {}: option \"{}\" is unknown; the rule has none", rule_, key);
      fail(ErrorKind::argument, "algorithm {}: option \"{}\" is unknown; choose from {}{}", rule_,
           key, fmt::join(known_, ", "), did_you_mean(key, known_));
    }
  }

 private:
  template <class T>
  void parse(std::string_view key, const std::string& text, T& value) const {
    require(reads(text, value), ErrorKind::argument, "algorithm {}: {}={}; a number is required",
            rule_, key, text);
    if constexpr (std::is_floating_point_v<T>)
      require(std::isfinite(value), ErrorKind::argument,
              "algorithm {}: {}={}; a finite number is required", rule_, key, text);
  }
  void parse(std::string_view key, const std::string& text, bool& value) const {
    require(text == "true" || text == "false", ErrorKind::argument,
            "algorithm {}: {}={}; true or false is required", rule_, key, text);
    value = text == "true";
  }
  template <class T>
  void parse(std::string_view key, const std::string& text, std::optional<T>& value) const {
    if (text == "adaptive") {
      value.reset();
    } else {
      parse(key, text, value.emplace());
    }
  }

  std::string_view rule_;
  const Parameters& given_;
  std::vector<std::string_view> known_;
};

}  // namespace fast::algorithm
