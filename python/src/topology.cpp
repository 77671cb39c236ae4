// Topologies by name, from lists and from Python functions.
#include <fast/topology/topology.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fast/mixing/weights.hpp>
#include <fast/topology/load.hpp>

#include "bindings.hpp"
#include "errors.hpp"
#include "held.hpp"

namespace fast::python {
namespace {

using Lists = std::vector<std::vector<int>>;
using Weights = std::vector<std::vector<double>>;

Topology topology_of_lists(const std::string& name, const Lists& in_neighbors,
                           const Weights& weights, const std::vector<double>& self_weights) {
  if (weights.empty()) return {name, in_neighbors};
  return {name, in_neighbors, weights, self_weights};
}

/// `at_round` is called by every worker for itself, on any thread.
TopologyRule rule_of_function(const std::string& name, int workers, std::int64_t period,
                              nb::handle at_round) {
  const Held function(at_round);
  return Schedule(name, workers, period, [function](std::int64_t round) {
    const nb::gil_scoped_acquire gil;
    try {
      return nb::cast<Topology>(function.get()(round));
    } catch (const nb::python_error& error) {
      throw as_error(error);
    }
  });
}

Weights matrix_rows(const Topology& topology) {
  const std::vector<double> all = mixing_matrix(topology);
  const auto side = static_cast<std::ptrdiff_t>(topology.workers());
  Weights rows;
  for (auto row = all.begin(); row != all.end(); row += side) rows.emplace_back(row, row + side);
  return rows;
}

std::vector<nb::tuple> names() {
  std::vector<nb::tuple> all;
  for (const TopologyName& each : topology_names()) {
    all.push_back(nb::make_tuple(std::string(each.name), std::string(each.help)));
  }
  return all;
}

}  // namespace

void bind_topology(nb::module_& module) {
  nb::class_<Topology>(module, "Topology", "Who reads whom, for one number of workers.")
      .def(
          "__init__",
          [](Topology* self, const std::string& name, const Lists& in_neighbors,
             const Weights& weights, const std::vector<double>& self_weights) {
            new (self) Topology(topology_of_lists(name, in_neighbors, weights, self_weights));
          },
          nb::arg("name"), nb::arg("in_neighbors"), nb::arg("weights") = Weights(),
          nb::arg("self_weights") = std::vector<double>(),
          "in_neighbors[i] are the workers that worker i reads; weights[i] belongs to them.")
      .def_prop_ro("name", &Topology::name)
      .def_prop_ro("workers", &Topology::workers)
      .def("in_neighbors", &Topology::in_neighbors, nb::arg("worker"),
           "The workers that this worker reads.")
      .def("mixing_matrix", &matrix_rows, "The mixing weights, row by row.");

  nb::class_<TopologyRule>(module, "TopologyRule",
                           "Who reads whom, in every round, for any number of workers.")
      .def_static("load", &topology_on_hosts, nb::arg("name"),
                  nb::arg("hosts") = std::vector<int>(),
                  "By a name or from a file; hosts: as Group.hosts, which some names follow.")
      .def_static(
          "constant", [](const Topology& topology) { return TopologyRule(topology); },
          nb::arg("topology"), "The same topology in every round.")
      .def_static(
          "function", &rule_of_function, nb::arg("name"), nb::arg("workers"), nb::arg("period"),
          nb::arg("at_round"),
          "at_round(round) makes the Topology of a round; `period` rounds repeat, 0: never.")
      .def_prop_ro("name", &TopologyRule::name)
      .def_prop_ro("natural_workers", &TopologyRule::natural_workers)
      .def(
          "at",
          [](const TopologyRule& rule, int workers, std::int64_t round) {
            const nb::gil_scoped_release released;
            return rule.make(workers).at(round);
          },
          nb::arg("workers"), nb::arg("round") = 0, "The topology of a round.");
  module.def("topology_names", &names, "Names of topologies and schedules, each with its help.");
}

}  // namespace fast::python
