#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <fast/topology/stencil.hpp>
#include <limits>
#include <numeric>
#include <utility>

namespace fast {
namespace {

int checked_workers(const std::vector<int>& sides) {
  require(!sides.empty(), ErrorKind::topology, "stencil: a grid without sides; give at least one");
  std::int64_t workers = 1;
  for (const int side : sides) {
    require(side >= 1, ErrorKind::topology, "stencil: side {} of grid {}, at least 1 is required",
            side, sides_text(sides));
    workers *= side;
    require(workers <= std::numeric_limits<int>::max(), ErrorKind::topology,
            "stencil: grid {} has more workers than {}; give smaller sides", sides_text(sides),
            std::numeric_limits<int>::max());
  }
  return static_cast<int>(workers);
}

int wrapped(std::int64_t value, int side) {
  const auto rest = static_cast<int>(value % side);
  return rest < 0 ? rest + side : rest;
}

std::vector<int> wrapped(const std::vector<int>& offset, const std::vector<int>& sides) {
  std::vector<int> result(sides.size());
  for (std::size_t d = 0; d < sides.size(); ++d) result[d] = wrapped(offset[d], sides[d]);
  return result;
}

bool reaches_another(const std::vector<int>& offset, const std::vector<int>& sides) {
  bool moves = false;
  for (std::size_t d = 0; d < sides.size(); ++d) {
    if (std::abs(std::int64_t{offset[d]}) >= sides[d]) return false;
    moves = moves || offset[d] != 0;
  }
  return moves;
}

Offsets distinct(const GridShape& grid, const Offsets& offsets) {
  Offsets result;
  for (const std::vector<int>& offset : offsets) {
    require(offset.size() == grid.sides.size(), ErrorKind::topology,
            "stencil: offset ({}) has {} numbers, grid {} has {} sides; give one number a side",
            fmt::join(offset, ", "), offset.size(), sides_text(grid.sides), grid.sides.size());
    std::vector<int> kept = grid.periodic ? wrapped(offset, grid.sides) : offset;
    if (reaches_another(kept, grid.sides)) result.push_back(std::move(kept));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool closed_under_negation(const GridShape& grid, const Offsets& offsets) {
  return std::all_of(offsets.begin(), offsets.end(), [&](std::vector<int> offset) {
    for (int& step : offset) step = -step;
    if (grid.periodic) offset = wrapped(offset, grid.sides);
    return std::binary_search(offsets.begin(), offsets.end(), offset);
  });
}

}  // namespace

std::string sides_text(const std::vector<int>& sides) {
  return fmt::format("{}", fmt::join(sides, "x"));
}

std::vector<int> balanced_sides(int workers, int dimensions) {
  require(workers >= 1 && dimensions >= 1 && dimensions <= 3, ErrorKind::topology,
          "balanced_sides: {} workers in {} dimensions; required are at least 1 worker and 1 to 3 "
          "dimensions, for more give the sides",
          workers, dimensions);
  if (dimensions == 1) return {workers};
  std::vector<int> best;
  // The smallest of the sides is at most the root; from there down, the first found is most even.
  for (int last = static_cast<int>(std::pow(workers, 1.0 / dimensions) + 1e-9); last >= 1; --last) {
    if (workers % last != 0) continue;
    std::vector<int> sides = balanced_sides(workers / last, dimensions - 1);
    sides.push_back(last);
    const auto sum = [](const std::vector<int>& s) {
      return std::accumulate(s.begin(), s.end(), std::int64_t{0});
    };
    if (best.empty() || sum(sides) < sum(best)) best = std::move(sides);
    if (dimensions == 2) break;
  }
  std::sort(best.rbegin(), best.rend());
  return best;
}

Offsets von_neumann(int dimensions) {
  Offsets offsets;
  for (int d = 0; d < dimensions; ++d) {
    for (const int step : {-1, 1}) {
      offsets.emplace_back(dimensions, 0);
      offsets.back()[d] = step;
    }
  }
  return offsets;
}

Offsets moore(int dimensions) {
  require(dimensions >= 1 && dimensions <= 8, ErrorKind::topology,
          "moore: {} dimensions, 1 to 8 are possible", dimensions);
  Offsets offsets = {{}};
  for (int d = 0; d < dimensions; ++d) {
    Offsets longer;
    for (const std::vector<int>& offset : offsets) {
      for (const int step : {-1, 0, 1}) {
        longer.push_back(offset);
        longer.back().push_back(step);
      }
    }
    offsets = std::move(longer);
  }
  std::erase(offsets, std::vector<int>(dimensions, 0));
  return offsets;
}

StencilGraph::StencilGraph(GridShape grid, const Offsets& offsets)
    : grid_(std::move(grid)), workers_(checked_workers(grid_.sides)) {
  offsets_ = distinct(grid_, offsets);
  symmetric_ = closed_under_negation(grid_, offsets_);
}

std::vector<int> StencilGraph::at(int worker, int sign) const {
  const std::vector<int>& sides = grid_.sides;
  std::vector<int> place(sides.size());
  for (std::size_t d = sides.size(); d-- > 0; worker /= sides[d]) place[d] = worker % sides[d];

  std::vector<int> neighbors;
  neighbors.reserve(offsets_.size());
  for (const std::vector<int>& offset : offsets_) {
    int neighbor = 0;
    bool inside = true;
    for (std::size_t d = 0; d < sides.size() && inside; ++d) {
      const std::int64_t moved = std::int64_t{place[d]} + sign * std::int64_t{offset[d]};
      inside = grid_.periodic || (moved >= 0 && moved < sides[d]);
      neighbor = neighbor * sides[d] + wrapped(moved, sides[d]);
    }
    if (inside) neighbors.push_back(neighbor);
  }
  std::sort(neighbors.begin(), neighbors.end());
  return neighbors;
}

int StencilGraph::in_degree(int worker) const {
  return grid_.periodic ? static_cast<int>(offsets_.size()) : Graph::in_degree(worker);
}

int StencilGraph::out_degree(int worker) const {
  return grid_.periodic ? static_cast<int>(offsets_.size()) : Graph::out_degree(worker);
}

}  // namespace fast
