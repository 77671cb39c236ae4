// The few SVG elements that pictures are made of.
#pragma once

#include <fast/topology/topology.hpp>

#include <string>
#include <vector>

namespace fast {

/// Where a picture puts workers.
struct Point {
  double x = 0, y = 0;
};

struct Layout {
  std::vector<Point> at;  ///< of each worker, in units of the distance between neighbors
  double width = 1, height = 1;
  double spacing = 1;        ///< between the nearest two
  std::vector<int> torus{};  ///< rows and columns when edges may leave at one side and come back
};

Layout layout_of(const Topology& topology);

inline constexpr const char* ink = "#1d2733";
inline constexpr const char* quiet = "#7d8b9c";
inline constexpr const char* node_color = "#2b6cb0";
inline constexpr const char* read_color = "#f0a860";
inline constexpr const char* accent = "#d9660b";

std::string escaped(const std::string& text);
std::string text_element(Point at, double size, const char* anchor, const char* color,
                         const std::string& text, bool bold = false);
/// White ground, the font, and the arrow heads "arrow" and "arrow0".
std::string document(double width, double height, const std::string& body);

}  // namespace fast
