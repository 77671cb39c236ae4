#include <fast/topology/stencil.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <limits>
#include <numeric>
#include <utility>

#include "topology/stencil_graph.hpp"

namespace fast {
namespace {

constexpr double largest_table = 4096;

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
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool closed_under_negation(const GridShape& grid, const Offsets& offsets) {
  return std::ranges::all_of(offsets, [&](std::vector<int> offset) {
    for (int& step : offset) step = -step;
    if (grid.periodic) offset = wrapped(offset, grid.sides);
    return std::ranges::binary_search(offsets, offset);
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
  if (!grid_.periodic) count_degrees();
}

int StencilGraph::neighbor(int worker, const std::vector<int>& offset, int sign) const {
  const std::vector<int>& sides = grid_.sides;
  std::int64_t result = 0, stride = 1;
  for (std::size_t d = sides.size(); d-- > 0; worker /= sides[d]) {
    const std::int64_t moved = worker % sides[d] + sign * std::int64_t{offset[d]};
    if (!grid_.periodic && (moved < 0 || moved >= sides[d])) return -1;
    result += stride * wrapped(moved, sides[d]);
    stride *= sides[d];
  }
  return static_cast<int>(result);
}

std::vector<int> StencilGraph::at(int worker, int sign) const {
  std::vector<int> neighbors;
  neighbors.reserve(offsets_.size());
  for (const std::vector<int>& offset : offsets_) {
    const int found = neighbor(worker, offset, sign);
    if (found >= 0) neighbors.push_back(found);
  }
  std::ranges::sort(neighbors);
  return neighbors;
}

int StencilGraph::degree(int worker, int sign) const {
  if (grid_.periodic) return static_cast<int>(offsets_.size());
  if (degrees_.empty()) return static_cast<int>(at(worker, sign).size());
  return degrees_[place_class(worker, sign)];
}

// Looking along -offset is looking along offset from the mirrored place.
std::size_t StencilGraph::place_class(int worker, int sign) const {
  std::size_t result = 0, stride = 1;
  for (std::size_t d = grid_.sides.size(); d-- > 0; worker /= grid_.sides[d]) {
    const int along = worker % grid_.sides[d];
    const int below = sign > 0 ? along : grid_.sides[d] - 1 - along;
    const int above = grid_.sides[d] - 1 - below;
    result += stride * (std::min(below, reach_below_[d]) * (reach_above_[d] + 1) +
                        std::min(above, reach_above_[d]));
    stride *= static_cast<std::size_t>(reach_below_[d] + 1) * (reach_above_[d] + 1);
  }
  return result;
}

void StencilGraph::count_degrees() {
  const std::size_t dimensions = grid_.sides.size();
  reach_below_.assign(dimensions, 0);
  reach_above_.assign(dimensions, 0);
  for (const std::vector<int>& offset : offsets_) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      reach_below_[d] = std::max(reach_below_[d], -offset[d]);
      reach_above_[d] = std::max(reach_above_[d], offset[d]);
    }
  }
  double classes = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    classes *= (reach_below_[d] + 1.0) * (reach_above_[d] + 1.0);
  }
  if (classes > largest_table) return;
  degrees_.resize(static_cast<std::size_t>(classes));
  for (std::size_t k = 0; k < degrees_.size(); ++k) {
    degrees_[k] = static_cast<int>(std::ranges::count_if(
        offsets_, [&](const std::vector<int>& offset) { return fits(offset, k); }));
  }
}

// Whether the offset stays on the grid from places of that class.
bool StencilGraph::fits(const std::vector<int>& offset, std::size_t place_class) const {
  for (std::size_t d = grid_.sides.size(); d-- > 0;) {
    const auto above = static_cast<std::size_t>(reach_above_[d] + 1);
    const auto below = static_cast<std::size_t>(reach_below_[d] + 1);
    if (offset[d] > static_cast<int>(place_class % above)) return false;
    if (-offset[d] > static_cast<int>(place_class / above % below)) return false;
    place_class /= above * below;
  }
  return true;
}

WeightedStencilGraph::WeightedStencilGraph(GridShape grid, const Offsets& offsets,
                                           const std::vector<double>& weights)
    : StencilGraph(std::move(grid), offsets) {
  require(weights.size() == offsets.size(), ErrorKind::topology,
          "stencil: {} offsets and {} weights; give one weight an offset", offsets.size(),
          weights.size());
  double sum = 0;
  for (const double weight : weights) {
    require(std::isfinite(weight) && weight >= 0, ErrorKind::topology,
            "stencil: the weight {}; weights are finite and not negative", weight);
    sum += weight;
  }
  require(
      sum <= 1 + 1e-9, ErrorKind::topology,
      "stencil: the offsets' weights sum to {:.6g}, at most 1 leaves a weight for a worker's own "
      "value; lower them by {:.6g} or scale them by {:.6g}",
      sum, sum - 1, 1 / sum);
  weights_.assign(this->offsets().size(), 0);
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    const std::vector<int> kept =
        this->grid().periodic ? wrapped(offsets[k], this->grid().sides) : offsets[k];
    const auto at = std::lower_bound(this->offsets().begin(), this->offsets().end(), kept);
    if (at != this->offsets().end() && *at == kept) {
      weights_[static_cast<std::size_t>(at - this->offsets().begin())] += weights[k];
    }
  }
}

std::vector<double> WeightedStencilGraph::in_weights(int worker) const {
  std::vector<std::pair<int, double>> reached;
  for (std::size_t k = 0; k < weights_.size(); ++k) {
    const int found = neighbor(worker, offsets()[k], 1);
    if (found >= 0) reached.emplace_back(found, weights_[k]);
  }
  std::ranges::sort(reached);
  std::vector<double> result;
  for (const auto& [unused, weight] : reached) result.push_back(weight);
  return result;
}

double WeightedStencilGraph::self_weight(int worker) const {
  double rest = 1;
  for (const double weight : in_weights(worker)) rest -= weight;
  return std::max(0.0, rest);
}

}  // namespace fast

namespace fast::stencil {
namespace {

Topology made(std::string name, GridShape grid, const Offsets& offsets,
              const std::vector<double>& weights = {}) {
  if (weights.empty()) {
    return {std::move(name), std::make_shared<StencilGraph>(std::move(grid), offsets)};
  }
  return {std::move(name),
          std::make_shared<WeightedStencilGraph>(std::move(grid), offsets, weights)};
}

TopologyRule nearest(const std::string& name, bool periodic, int dimensions,
                     std::vector<int> sides) {
  require(sides.empty() || static_cast<int>(sides.size()) == dimensions, ErrorKind::topology,
          "stencil: {}d with {} sides ({}), {} are required", name, sides.size(), sides_text(sides),
          dimensions);
  return on_grid(name, {std::move(sides), periodic}, von_neumann(dimensions));
}

}  // namespace

TopologyRule on_grid(std::string name, GridShape grid, Offsets offsets,
                     std::vector<double> weights) {
  require(!offsets.empty(), ErrorKind::topology, "stencil: {} has no offsets; give at least one",
          name);
  int workers = 0;
  if (!grid.sides.empty()) {
    workers = made(name, grid, offsets, weights).workers();  // what cannot be is said early
    name = fmt::format("{} {}", name, sides_text(grid.sides));
  } else if (!weights.empty()) {
    const WeightedStencilGraph check({std::vector<int>(offsets[0].size(), 1)}, offsets, weights);
  }
  const auto make = [=, offsets = std::move(offsets)](int count) {
    if (workers != 0) return Schedule(made(name, grid, offsets, weights));
    GridShape even{balanced_sides(count, static_cast<int>(offsets[0].size())), grid.periodic};
    std::string full = fmt::format("{} {}", name, sides_text(even.sides));
    return Schedule(made(std::move(full), std::move(even), offsets, weights));
  };
  return {name, make, workers};
}

TopologyRule moore2d(std::vector<int> sides) {
  return on_grid("moore", {std::move(sides), true}, moore(2));
}
TopologyRule moore3d(std::vector<int> sides) {
  return on_grid("moore", {std::move(sides), true}, moore(3));
}

TopologyRule ring(bool directed) {
  const std::string name = directed ? "directed_ring" : "ring";
  const Offsets offsets = directed ? Offsets{{-1}} : von_neumann(1);
  return {name, [=](int workers) { return Schedule(made(name, {{workers}}, offsets)); }};
}

TopologyRule torus2d(std::vector<int> sides) { return nearest("torus", true, 2, std::move(sides)); }
TopologyRule torus3d(std::vector<int> sides) { return nearest("torus", true, 3, std::move(sides)); }
TopologyRule grid1d() { return nearest("grid", false, 1, {}); }
TopologyRule grid2d(std::vector<int> sides) { return nearest("grid", false, 2, std::move(sides)); }
TopologyRule grid3d(std::vector<int> sides) { return nearest("grid", false, 3, std::move(sides)); }

TopologyRule hypercube() {
  return {"hypercube", [](int workers) {
            const auto n = static_cast<unsigned>(workers);
            require(std::has_single_bit(n), ErrorKind::topology,
                    "hypercube: {} workers, a power of two is required; start {} or {}", workers,
                    std::bit_floor(n), std::bit_ceil(n));
            const int dimensions = workers == 1 ? 1 : std::countr_zero(n);
            GridShape grid{std::vector<int>(dimensions, workers == 1 ? 1 : 2)};
            return Schedule(made("hypercube", std::move(grid), von_neumann(dimensions)));
          }};
}

TopologyRule complete() {
  return {"complete", [](int workers) {
            require(workers <= 1 << 20, ErrorKind::topology,
                    "complete: {} workers, at most {} can all read each other; choose exponential",
                    workers, 1 << 20);
            Offsets all;
            for (int hop = 1; hop < workers; ++hop) all.push_back({hop});
            return Schedule(made("complete", {{workers}}, all));
          }};
}

TopologyRule exponential() {
  return {"exponential", [](int workers) {
            Offsets hops;
            for (std::int64_t hop = 1; hop < workers; hop *= 2) {
              hops.push_back({static_cast<int>(-hop)});
            }
            return Schedule(made("exponential", {{workers}}, hops));
          }};
}

}  // namespace fast::stencil
