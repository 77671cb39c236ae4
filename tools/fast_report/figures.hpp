// The figures of a page: places in its text, and the data that its script draws there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fast_report {

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
