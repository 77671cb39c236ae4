// Python objects in the hands of C++ threads.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace fast::python {

namespace nb = nanobind;

/// A Python object that threads without the GIL may copy and destroy. Only get() needs the GIL.
class Held {
 public:
  explicit Held(nb::handle object) : object_(nb::borrow(object).release().ptr(), release) {}
  nb::handle get() const { return object_.get(); }

 private:
  static void release(PyObject* object) {
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    Py_DECREF(object);
  }
  std::shared_ptr<PyObject> object_;
};

/// Calls `part` from any thread that has the GIL; nothing is thrown. What it raises goes to
/// sys.unraisablehook, and the result is false. KeyboardInterrupt is for the main thread: Python
/// raises it there when this call of the library has returned, and the result is true.
template <class Part>
bool quietly(nb::handle culprit, const Part& part) noexcept {
  try {
    part();
    return true;
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) {
      PyErr_SetInterrupt();
      return true;
    }
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  PyErr_WriteUnraisable(culprit.ptr());
  return false;
}

}  // namespace fast::python
