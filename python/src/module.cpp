// fast_decentralized._core: the C++ library for the Python package. Every call that may wait
// releases the GIL; callbacks acquire it.
#include <fast/core/version.hpp>

#include "bindings.hpp"
#include "tensors.hpp"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // what the program still holds when it ends is no fault of it
  module.doc() = "The C++ library FAST. Use the package fast_decentralized instead.";
  module.attr("version") = fast::version().data();
  module.attr("has_cuda") = fast::python::has_cuda;
  fast::python::bind_errors(module);
  fast::python::bind_group(module);
  fast::python::bind_members(module);
  fast::python::bind_observer(module);
  fast::python::bind_options(module);
  fast::python::bind_topology(module);
  fast::python::bind_rule(module);
  fast::python::bind_worker(module);
}
