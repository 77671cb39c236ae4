#include "observer.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <fast/observe/prometheus.hpp>
#include <fast/observe/tensorboard.hpp>
#include <fast/observe/trace.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "held.hpp"
#include "options.hpp"
#include "train/record/run_metrics.hpp"

namespace fast::python {
namespace {

/// On the clock of time.monotonic().
double seconds_of(Clock::time_point at) {
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

/// The events as Python sees them; they own their text.
struct Scalar {
  std::string name;
  ScalarEvent event;
};

class PythonObserver final : public Observer {
 public:
  explicit PythonObserver(nb::handle object)
      : object_(object),
        phase_(method(object, "on_phase")),
        message_(method(object, "on_message")),
        peer_(method(object, "on_peer")),
        scalar_(method(object, "on_scalar")) {}

  void on_phase(const PhaseEvent& event) noexcept override { tell(phase_, event); }
  void on_message(const MessageEvent& event) noexcept override { tell(message_, event); }
  void on_peer(const PeerEvent& event) noexcept override { tell(peer_, event); }
  void on_scalar(const ScalarEvent& event) noexcept override {
    tell(scalar_, Scalar{std::string(event.name), event});
  }

 private:
  static std::optional<Held> method(nb::handle object, const char* name) {
    if (!nb::hasattr(object, name)) return std::nullopt;
    return Held(object.attr(name));
  }

  template <class Event>
  void tell(const std::optional<Held>& listener, const Event& event) noexcept {
    if (!listener || broken_ || Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    if (!quietly(object_.get(), [&] { listener->get()(event); })) broken_ = true;
  }

  Held object_;
  std::optional<Held> phase_, message_, peer_, scalar_;
  std::atomic<bool> broken_{false};
};

template <class Event>
nb::class_<Event> event_class(nb::module_& module, const char* name, const char* doc) {
  return nb::class_<Event>(module, name, doc)
      .def_ro("worker", &Event::worker)
      .def_ro("round", &Event::round);
}

// The library's own observers: timelines, event files, a server for Prometheus, metrics.

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

std::shared_ptr<Observer> observer_of(nb::handle object) {
  if (object.is_none()) return nullptr;
  if (nb::isinstance<ReadyObserver>(object)) return nb::cast<ReadyObserver&>(object).observer;
  if (nb::isinstance<nb::list>(object)) {
    std::vector<std::shared_ptr<Observer>> several;
    for (const nb::handle one : nb::borrow<nb::list>(object)) several.push_back(observer_of(one));
    return all_of(std::move(several));
  }
  return std::make_shared<PythonObserver>(object);
}

void bind_observer(nb::module_& module) {
  event_class<PhaseEvent>(module, "PhaseEvent",
                          "A span of a worker's time. Times are those of time.monotonic().")
      .def_ro("peer", &PhaseEvent::peer, "Of a wait for one worker; -1: all of the round.")
      .def_prop_ro("phase",
                   [](const PhaseEvent& event) { return std::string(fast::name(event.phase)); })
      .def_prop_ro("began", [](const PhaseEvent& event) { return seconds_of(event.began); })
      .def_prop_ro("ended", [](const PhaseEvent& event) { return seconds_of(event.ended); });
  event_class<MessageEvent>(module, "MessageEvent",
                            "A worker has published, or has combined a publication.")
      .def_ro("sender", &MessageEvent::from, "Whose publication it is.")
      .def_ro("sequence", &MessageEvent::sequence, "Its number, from 1 on.")
      .def_ro("age", &MessageEvent::age, "Rounds behind.")
      .def_ro("fresh", &MessageEvent::fresh, "Not read before.")
      .def_ro("kept", &MessageEvent::kept, "The share that robust averaging has kept.")
      .def_prop_ro("kind",
                   [](const MessageEvent& event) {
                     return event.kind == MessageEvent::Kind::read ? "read" : "published";
                   })
      .def_prop_ro("at", [](const MessageEvent& event) { return seconds_of(event.at); });
  event_class<PeerEvent>(module, "PeerEvent", "A worker takes another for dead or back.")
      .def_ro("peer", &PeerEvent::peer)
      .def_prop_ro("kind",
                   [](const PeerEvent& event) { return std::string(fast::name(event.kind)); })
      .def_prop_ro("at", [](const PeerEvent& event) { return seconds_of(event.at); });
  nb::class_<Scalar>(module, "ScalarEvent", "A number with a name.")
      .def_ro("name", &Scalar::name)
      .def_prop_ro("value", [](const Scalar& scalar) { return scalar.event.value; })
      .def_prop_ro("worker", [](const Scalar& scalar) { return scalar.event.worker; })
      .def_prop_ro("round", [](const Scalar& scalar) { return scalar.event.round; })
      .def_prop_ro("at", [](const Scalar& scalar) { return seconds_of(scalar.event.at); });
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
