#include "topology_tools/drawing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <numbers>

#include "topology/hosts.hpp"
#include "topology/stencil_graph.hpp"

namespace fast {
namespace {

Layout on_circle(int workers, int center) {
  const int around = workers - (center >= 0 ? 1 : 0);
  const double radius = std::max(0.9, around / (2 * std::numbers::pi));
  Layout layout{{}, 2 * radius, 2 * radius, 1, {}};
  for (int i = 0, k = 0; i < workers; ++i) {
    if (i == center) {
      layout.at.push_back({radius, radius});
      continue;
    }
    const double angle = 2 * std::numbers::pi * k++ / std::max(1, around);
    layout.at.push_back({radius + radius * std::sin(angle), radius - radius * std::cos(angle)});
  }
  return layout;
}

// Hosts on a circle, each a small circle whose first worker looks inward.
Layout in_clusters(const std::vector<std::vector<int>>& hosts, int workers) {
  constexpr double turn = 2 * std::numbers::pi;
  std::size_t most = 1;
  for (const std::vector<int>& members : hosts) most = std::max(most, members.size());
  const double around = most == 1 ? 0 : std::max(0.55, static_cast<double>(most) / turn);
  const double count = static_cast<double>(hosts.size());
  const double across = (around + 0.75) / std::sin(turn / (2 * count)), middle = across + around;
  Layout layout{std::vector<Point>(workers), 2 * middle, 2 * middle, 1, {}};
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const double angle = turn * static_cast<double>(h) / count;
    for (std::size_t k = 0; k < hosts[h].size(); ++k) {
      const double own =
          angle + turn / 2 + turn * static_cast<double>(k) / static_cast<double>(hosts[h].size());
      layout.at[hosts[h][k]] = {middle + across * std::sin(angle) + around * std::sin(own),
                                middle - across * std::cos(angle) - around * std::cos(own)};
    }
  }
  return layout;
}

// Two sides, or three in oblique projection.
Layout on_grid(const std::vector<int>& sides, bool periodic, int workers) {
  const bool deep = sides.size() == 3;
  const int rows = sides[deep ? 1 : 0], columns = sides[deep ? 2 : 1], layers = deep ? sides[0] : 1;
  const double right = 1.08 / std::max(3, layers), up = 0.84 / std::max(3, layers);
  Layout layout{{}, columns - 1 + right * (layers - 1), rows - 1 + up * (layers - 1), 1, {}};
  if (deep) layout.spacing = std::min(1.0, 1.6 * std::hypot(right, up));
  for (int i = 0; i < workers; ++i) {
    const int column = i % columns, row = i / columns % rows, layer = i / columns / rows;
    layout.at.push_back({column + right * layer, row + up * (layers - 1 - layer)});
  }
  if (periodic && !deep) layout.torus = {rows, columns};
  return layout;
}

// Depth below worker 0, or empty when the graph is no tree.
std::vector<int> depths(const Topology& topology) {
  std::int64_t ends = 0;
  for (int i = 0; i < topology.workers(); ++i) ends += topology.in_degree(i);
  if (!topology.is_symmetric() || ends != 2 * std::int64_t{topology.workers() - 1}) return {};
  std::vector<int> depth(static_cast<std::size_t>(topology.workers()), -1);
  std::vector<int> open = {0};
  depth[0] = 0;
  for (std::size_t k = 0; k < open.size(); ++k) {
    for (const int j : topology.in_neighbors(open[k])) {
      if (depth[j] >= 0) continue;
      depth[j] = depth[open[k]] + 1;
      open.push_back(j);
    }
  }
  return open.size() == depth.size() ? depth : std::vector<int>{};
}

struct TreeLayout {
  const Topology& topology;
  const std::vector<int>& depth;
  Layout layout;
  double next = 0;

  // Leaves side by side, others above the middle of their children.
  void put(int worker) {
    std::vector<int> children;
    for (const int j : topology.in_neighbors(worker)) {
      if (depth[j] > depth[worker]) children.push_back(j);
    }
    for (const int child : children) put(child);
    const double x = children.empty()
                         ? next++
                         : (layout.at[children.front()].x + layout.at[children.back()].x) / 2;
    layout.at[worker] = {x, 1.2 * depth[worker]};
  }
};

Layout as_tree(const Topology& topology, const std::vector<int>& depth) {
  TreeLayout tree{topology, depth, {}, 0};
  tree.layout.at.resize(depth.size());
  tree.put(0);
  tree.layout.width = std::max(1.0, tree.next - 1);
  tree.layout.height = 1.2 * *std::ranges::max_element(depth);
  return std::move(tree.layout);
}

}  // namespace

Layout layout_of(const Topology& topology) {
  const int workers = topology.workers();
  if (const auto* on_hosts = dynamic_cast<const InHosts*>(&topology.graph())) {
    if (on_hosts->workers_of_host().size() > 1) {
      return in_clusters(on_hosts->workers_of_host(), workers);
    }
  }
  if (const auto* graph = dynamic_cast<const OnGrid*>(&topology.graph())) {
    std::vector<int> sides;
    for (const int side : graph->grid().sides) {
      if (side > 1) sides.push_back(side);
    }
    const bool periodic = graph->grid().periodic;
    if (sides.size() == 2 || sides.size() == 3) return on_grid(sides, periodic, workers);
    if (sides.size() == 1 && !periodic) return on_grid({1, workers}, false, workers);
    return on_circle(workers, -1);
  }
  for (int i = 0; i < workers && workers > 3; ++i) {
    if (topology.in_degree(i) == workers - 1 && topology.in_degree((i + 1) % workers) == 1) {
      return on_circle(workers, i);
    }
  }
  const std::vector<int> depth = depths(topology);
  const int deepest = depth.empty() ? 0 : *std::ranges::max_element(depth);
  if (!depth.empty() && workers > 3 && deepest < workers / 2) return as_tree(topology, depth);
  return on_circle(workers, -1);
}

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
