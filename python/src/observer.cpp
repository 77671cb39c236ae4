#include "observer.hpp"

#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "held.hpp"

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
}

}  // namespace fast::python
