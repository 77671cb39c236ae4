#include "fast_report/figures.hpp"

#include <fmt/format.h>

#include "fast_report/html.hpp"

namespace fast_report {

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
