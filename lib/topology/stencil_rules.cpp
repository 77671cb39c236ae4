#include <bit>
#include <fast/core/error.hpp>
#include <fast/topology/stencil.hpp>
#include <utility>

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
