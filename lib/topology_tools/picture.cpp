#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/topology_tools/picture.hpp>
#include <numeric>

#include "topology_tools/drawing.hpp"

namespace fast {
namespace {

constexpr int most_drawn_workers = 1024;
constexpr std::int64_t most_panels = 12;

// One round of a schedule in a square of `size` pixels.
class Panel {
 public:
  Panel(const Topology& topology, const Layout& layout, Point corner, double size)
      : topology_(topology), layout_(layout) {
    const double room = layout.torus.empty() ? 0.9 : 1.7;
    unit_ = std::min(size / (std::max(layout.width, layout.height) + room), size / 3.2);
    origin_ = {corner.x + (size - unit_ * layout.width) / 2,
               corner.y + (size - unit_ * layout.height) / 2};
    radius_ = std::min(0.27 * unit_ * layout.spacing, 20.0);
  }

  std::string draw() {
    for (const bool of_worker_0 : {false, true}) {
      for (int i = 0; i < topology_.workers(); ++i) {
        for (const int j : topology_.in_neighbors(i)) {
          if (of_worker_0 == (i == 0 || (j == 0 && reads(0, i)))) edge(j, i);
        }
      }
    }
    const std::vector<int> read = topology_.in_neighbors(0);
    for (int i = 0; i < topology_.workers(); ++i) {
      const bool is_read = std::ranges::binary_search(read, i);
      node(i, i == 0 ? accent : is_read ? read_color : node_color, is_read ? ink : "white");
    }
    return std::move(body_);
  }

 private:
  bool reads(int worker, int other) const {
    const std::vector<int> read = topology_.in_neighbors(worker);
    return std::ranges::binary_search(read, other);
  }

  Point pixel(Point at) const { return {origin_.x + unit_ * at.x, origin_.y + unit_ * at.y}; }

  void path(Point from, Point to, Point bend, bool arrow, bool own, bool stub) {
    const double width = std::clamp(radius_ / 8, 0.5, 2.2);
    body_ += fmt::format(
        "<path d=\"M{:.1f},{:.1f} Q{:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"none\" stroke=\"{}\" "
        "stroke-width=\"{:.2f}\"{}{}/>\n",
        from.x, from.y, bend.x, bend.y, to.x, to.y, own ? accent : quiet, own ? 1.4 * width : width,
        stub ? " stroke-dasharray=\"3 2.5\"" : "",
        arrow ? (own ? " marker-end=\"url(#arrow0)\"" : " marker-end=\"url(#arrow)\"") : "");
  }

  // The step from one worker to another on the grid, the short way round a torus.
  Point step(int from, int to) const {
    Point way{layout_.at[to].x - layout_.at[from].x, layout_.at[to].y - layout_.at[from].y};
    if (layout_.torus.empty()) return way;
    const auto shorter = [](double along, int side) {
      if (2 * along > side) return along - side;
      return 2 * along < -side ? along + side : along;
    };
    return {shorter(way.x, layout_.torus[1]), shorter(way.y, layout_.torus[0])};
  }

  void edge(int from, int to) {
    const bool two_way = reads(from, to);
    if (two_way && from > to) return;
    const bool own = to == 0 || (two_way && from == 0);
    const Point way = step(from, to), a = layout_.at[from], b = layout_.at[to];
    const double length = std::hypot(way.x, way.y), rim = radius_ / unit_;
    const Point unit{way.x / length, way.y / length};
    const bool wraps = std::abs(a.x + way.x - b.x) + std::abs(a.y + way.y - b.y) > 1e-6;
    if (wraps) {
      const double reach = 0.72 / std::max(std::abs(unit.x), std::abs(unit.y));
      const auto along = [&](Point p, double t) {
        return pixel({p.x + t * unit.x, p.y + t * unit.y});
      };
      stub(along(a, rim), along(a, reach), false, own);
      stub(along(b, -reach), along(b, -rim), !two_way, own);
      return;
    }
    const Point from_rim = pixel({a.x + rim * unit.x, a.y + rim * unit.y});
    const Point to_rim = pixel({b.x - rim * unit.x, b.y - rim * unit.y});
    const double bulge = passes_others(way) ? 0.16 * length * unit_ : 0;
    const Point bend{(from_rim.x + to_rim.x) / 2 - bulge * unit.y,
                     (from_rim.y + to_rim.y) / 2 + bulge * unit.x};
    path(from_rim, to_rim, bend, !two_way, own, false);
  }

  void stub(Point from, Point to, bool arrow, bool own) {
    path(from, to, {(from.x + to.x) / 2, (from.y + to.y) / 2}, arrow, own, true);
  }

  // On a grid: a straight line would cross other workers.
  bool passes_others(Point way) const {
    const double x = std::abs(way.x), y = std::abs(way.y);
    const auto whole = [](double v) { return std::abs(v - std::round(v)) < 1e-6; };
    if (layout_.torus.empty() || !whole(x) || !whole(y)) return false;
    return std::gcd(static_cast<int>(std::round(x)), static_cast<int>(std::round(y))) > 1;
  }

  void node(int worker, const char* fill, const char* text) {
    const Point at = pixel(layout_.at[worker]);
    body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", at.x,
                         at.y, radius_, fill);
    if (radius_ < 6) return;
    const double size = radius_ * (worker < 100 ? 1.0 : 0.8);
    body_ += text_element({at.x, at.y + 0.36 * size}, size, "middle", text, std::to_string(worker));
  }

  const Topology& topology_;
  const Layout& layout_;
  Point origin_;
  double unit_ = 1, radius_ = 1;
  std::string body_;
};

std::string dot_edges(const Topology& topology, std::int64_t round) {
  std::string text;
  for (int i = 0; i < topology.workers(); ++i) {
    text += fmt::format("    r{0}w{1} [label=\"{1}\"];\n", round, i);
    for (const int j : topology.in_neighbors(i)) {
      const std::vector<int> back = topology.in_neighbors(j);
      const bool two_way = std::ranges::binary_search(back, i);
      if (two_way && j > i) continue;
      text +=
          fmt::format("    r{0}w{1} -> r{0}w{2}{3};\n", round, j, i, two_way ? " [dir=none]" : "");
    }
  }
  return text;
}

std::int64_t shown_rounds(const Schedule& schedule) {
  return schedule.period() > 0 ? std::min(schedule.period(), most_panels) : 4;
}

}  // namespace

std::string svg_picture(const Schedule& schedule, const std::string& caption) {
  require(schedule.workers() <= most_drawn_workers, ErrorKind::topology,
          "svg_picture: {} workers, at most {} are drawn; take fewer", schedule.workers(),
          most_drawn_workers);
  const auto panels = static_cast<int>(shown_rounds(schedule));
  const int columns = panels == 1 ? 1 : panels <= 4 ? panels : panels <= 6 ? 3 : 4;
  const int rows = (panels + columns - 1) / columns;
  const double size = panels == 1 ? 520 : 300, label = panels == 1 ? 0 : 26, top = 78, margin = 16;
  std::string body = text_element({margin + 8, 36}, 22, "start", ink, schedule.name(), true);
  body += text_element({margin + 8, 60}, 14, "start", quiet, caption);
  const Layout layout = layout_of(schedule.at(0));
  for (int t = 0; t < panels; ++t) {
    const Point corner{margin + size * (t % columns), top + (size + label) * (t / columns)};
    if (panels > 1) {
      const std::string of =
          schedule.period() > 0 ? fmt::format(" of {}", schedule.period()) : std::string();
      body += text_element({corner.x + size / 2, corner.y + 14}, 14, "middle", ink,
                           fmt::format("round {}{}", t + 1, of));
    }
    const Topology topology = schedule.at(t);
    body += Panel(topology, layout, {corner.x, corner.y + label}, size).draw();
  }
  const double width = std::max(2 * margin + size * columns, 552.0);
  return document(width, top + (size + label) * rows + margin, body);
}

std::string dot_picture(const Schedule& schedule) {
  std::string text =
      fmt::format("digraph \"{}\" {{\n  node [shape=circle];\n", escaped(schedule.name()));
  for (std::int64_t t = 0; t < shown_rounds(schedule); ++t) {
    text += fmt::format("  subgraph cluster_{0} {{\n    label=\"round {0}\";\n{1}  }}\n", t,
                        dot_edges(schedule.at(t), t));
  }
  return text + "}\n";
}

std::string svg_curves(const std::string& title, const std::vector<Curve>& curves) {
  constexpr const char* colors[] = {"#2b6cb0", "#d9660b", "#2f855a", "#b83280",
                                    "#6b46c1", "#c53030", "#0987a0", "#4a5568"};
  const double left = 84, top = 78, width = 560, height = 380;
  std::size_t longest = 2;
  for (const Curve& curve : curves) longest = std::max(longest, curve.values.size());
  const double rounds = static_cast<double>(longest - 1);
  const auto at = [&](double round, double value) {
    const double down = std::clamp(-std::log10(std::max(value, 1e-6)), 0.0, 6.0);
    return Point{left + width * round / rounds, top + height * down / 6};
  };
  std::string body = text_element({24, 36}, 22, "start", ink, title, true);
  body += text_element({24, 60}, 14, "start", quiet,
                       "disagreement between workers, as a share of that at the start");
  for (int decade = 0; decade <= 6; ++decade) {
    const Point p = at(0, std::pow(10, -decade));
    body += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#e2e8f0\"/>\n", p.x,
        p.y, left + width, p.y);
    body += text_element({left - 10, p.y + 5}, 13, "end", quiet,
                         decade == 0 ? "1" : fmt::format("1e-{}", decade));
  }
  for (int tick = 0; tick <= 5; ++tick) {
    const double round = std::round(rounds * tick / 5);
    body += text_element({at(round, 1).x, top + height + 22}, 13, "middle", quiet,
                         fmt::format("{:.0f}", round));
  }
  body += text_element({left + width / 2, top + height + 44}, 14, "middle", ink, "rounds");
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const char* color = colors[c % std::size(colors)];
    std::string points;
    for (std::size_t t = 0; t < curves[c].values.size(); ++t) {
      const Point p = at(static_cast<double>(t), curves[c].values[t]);
      points += fmt::format("{:.1f},{:.1f} ", p.x, p.y);
      if (curves[c].values[t] < 1e-6) break;
    }
    body += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.4\" "
        "stroke-linejoin=\"round\"/>\n",
        points, color);
    const double y = top + 12 + 22 * static_cast<double>(c);
    body += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\" stroke=\"{3}\" "
        "stroke-width=\"3\"/>\n",
        left + width + 24, y - 4, left + width + 50, color);
    body += text_element({left + width + 58, y}, 14, "start", ink, curves[c].name);
  }
  return document(left + width + 270,
                  std::max(top + height + 64, top + 30 + 22 * static_cast<double>(curves.size())),
                  body);
}

}  // namespace fast
