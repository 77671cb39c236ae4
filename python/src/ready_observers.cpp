// The library's own observers: timelines, event files, a server for Prometheus, metrics.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fast/observe/prometheus.hpp>
#include <fast/observe/tensorboard.hpp>
#include <fast/observe/trace.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "observer.hpp"
#include "options.hpp"
#include "train/record/run_metrics.hpp"

namespace fast::python {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;
using train::Metric;
using train::RunMetrics;

ReadyObserver trace(const std::string& directory, int worker, std::size_t size_bytes,
                    std::pair<std::int64_t, std::int64_t> rounds, nb::handle log) {
  return {observe::trace(
      directory, worker,
      {.size_bytes = size_bytes, .first_round = rounds.first, .last_round = rounds.second},
      log_to(log))};
}

ReadyObserver tensorboard(const std::string& directory, nb::handle log) {
  return {observe::tensorboard(directory, log_to(log))};
}

ReadyObserver prometheus(int port, int worker, const std::string& address) {
  require(port >= 1 && port <= 65535, ErrorKind::argument,
          "observe.Prometheus: port {}; a port from 1 to 65535 is required", port);
  return {observe::prometheus(port, worker, address)};
}

Metric metric_of(const std::string& name, nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return {name, nb::cast<bool>(value)};
  if (nb::isinstance<nb::int_>(value)) return {name, nb::cast<std::int64_t>(value)};
  if (nb::isinstance<nb::str>(value)) return {name, nb::cast<std::string>(value)};
  if (nb::isinstance<nb::list>(value)) return {name, nb::cast<std::vector<int>>(value)};
  return {name, nb::cast<double>(nb::float_(value))};
}

std::vector<Metric> metrics_of(const nb::dict& values) {
  std::vector<Metric> metrics;
  for (const auto& [name, value] : values) {
    metrics.push_back(metric_of(nb::cast<std::string>(name), value));
  }
  return metrics;
}

/// Lines of metrics, as those of fast-train. The object and its workers share them.
struct Metrics {
  Metrics(const std::string& directory, int worker, nb::handle log)
      : lines(std::make_shared<RunMetrics>(log_to(log))) {
    lines->open(directory, worker);
  }
  ReadyObserver observer() const { return {lines}; }
  void end_epoch(const nb::dict& results) const {
    std::vector<Metric> values = metrics_of(results);
    const nb::gil_scoped_release released;
    lines->end_rounds();
    lines->end_epoch(std::move(values));
    lines->begin_epoch();
  }
  void after_round(std::int64_t step, int epoch, double samples) const {
    lines->after_round({.step = step, .epoch = epoch, .samples = samples});
  }

  std::shared_ptr<RunMetrics> lines;
};

void bind_metrics(nb::module_& module) {
  nb::class_<Metrics>(module, "Metrics", "The lines of metrics of a worker.")
      .def(nb::init<const std::string&, int, nb::handle>(), nb::arg("directory"), nb::arg("worker"),
           nb::arg("log").none())
      .def_prop_ro("observer", &Metrics::observer)
      .def(
          "start",
          [](const Metrics& metrics, const nb::dict& facts) {
            metrics.lines->start(metrics_of(facts));
            metrics.lines->begin_epoch();
          },
          nb::arg("facts"))
      .def("after_round", &Metrics::after_round, nb::arg("step"), nb::arg("epoch"),
           nb::arg("samples"), Release())
      .def("end_epoch", &Metrics::end_epoch, nb::arg("results"))
      .def(
          "end",
          [](const Metrics& metrics, std::int64_t step, const nb::dict& results) {
            metrics.lines->end(step, "finished", metrics_of(results));
          },
          nb::arg("step"), nb::arg("results"))
      .def(
          "fail",
          [](const Metrics& metrics, const std::string& text) { metrics.lines->fail(text); },
          nb::arg("text"));
}

}  // namespace

void bind_ready_observers(nb::module_& module) {
  nb::class_<ReadyObserver>(module, "ReadyObserver", "An observer of the C++ library.")
      .def(
          "scalar",
          [](const ReadyObserver& ready, const std::string& name, double value, int worker,
             std::int64_t round) {
            ready.observer->on_scalar({name, value, worker, round, Clock::now()});
          },
          nb::arg("name"), nb::arg("value"), nb::arg("worker"), nb::arg("round"), Release(),
          "Tells it a number of that round.");
  module.def("trace", &trace, nb::arg("directory"), nb::arg("worker"), nb::arg("size_bytes"),
             nb::arg("rounds"), nb::arg("log").none());
  module.def("tensorboard", &tensorboard, nb::arg("directory"), nb::arg("log").none());
  module.def("prometheus", &prometheus, nb::arg("port"), nb::arg("worker"), nb::arg("address"));
  bind_metrics(module);
}

}  // namespace fast::python
