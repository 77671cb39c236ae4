#include "topology_tools/drawing.hpp"

#include <fmt/core.h>

namespace fast {
namespace {

std::string arrow_head(const char* id, const char* color) {
  return fmt::format(
      "<marker id=\"{}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"6.5\" "
      "markerHeight=\"6.5\" orient=\"auto-start-reverse\"><path d=\"M0,1 L10,5 L0,9 Z\" "
      "fill=\"{}\"/></marker>\n",
      id, color);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      result += c;
    }
  }
  return result;
}

std::string text_element(Point at, double size, const char* anchor, const char* color,
                         const std::string& text, bool bold) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}"
      "</text>\n",
      at.x, at.y, size, anchor, color, bold ? " font-weight=\"600\"" : "", escaped(text));
}

std::string document(double width, double height, const std::string& body) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', "
             "sans-serif\">\n<defs>\n",
             width, height) +
         arrow_head("arrow", quiet) + arrow_head("arrow0", accent) +
         "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + body + "</svg>\n";
}

}  // namespace fast
