// Python objects as observers of a worker.
#pragma once

#include <nanobind/nanobind.h>

#include <fast/core/observer.hpp>

#include <memory>

namespace fast::python {

/// An observer of the library, for Python to hold.
struct ReadyObserver {
  std::shared_ptr<Observer> observer;
};

/// Calls those of the object's methods on_phase, on_message, on_peer and on_scalar that it has. An
/// exception in one goes to sys.unraisablehook, and the observer is not called any more. A list is
/// one observer that tells several. Null for None.
std::shared_ptr<Observer> observer_of(nanobind::handle object);

}  // namespace fast::python
