// Calls that wait without the GIL, and signals meanwhile.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <exception>
#include <fast/core/deadline.hpp>

namespace fast::python {

namespace nb = nanobind;

/// What Python calls in each wait, on any thread; null: nothing. It is kept for good.
inline PyObject* wait_hook = nullptr;

/// While it lives, this thread has no GIL. While a call waits for others, Python's signal handlers
/// run, on the main thread, and wait_hook on all. What these raise ends the wait, and all further
/// waits of the call.
class Waiting {
 public:
  Waiting() : check_([this] { look(); }) {}
  /// Goes on after exceptions of which `is_dropped` is true.
  explicit Waiting(nb::handle is_dropped) : is_dropped_(is_dropped), check_([this] { look(); }) {}

  /// Throws what a handler has raised, if a call has dropped it.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  void look() {
    rethrow();
    const nb::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) nb::raise_python_error();
      const nb::handle hook = wait_hook;
      if (hook.is_valid()) hook();
    } catch (const nb::python_error& error) {
      if (is_dropped_.is_valid() && nb::cast<bool>(is_dropped_(error.value()))) return;
      raised_ = std::current_exception();
      throw;
    }
  }

  nb::handle is_dropped_;
  nb::gil_scoped_release released_;
  std::exception_ptr raised_;
  WaitCheck check_;
};

/// A signal handler has ended a collective call of this process. The others still wait in it.
inline std::atomic<bool> has_left_others_waiting = false;

/// Runs a collective call.
template <class Call>
auto waiting_together(const Call& call) {
  try {
    const Waiting waiting;
    return call();
  } catch (const nb::python_error&) {
    has_left_others_waiting = true;
    throw;
  }
}

}  // namespace fast::python
