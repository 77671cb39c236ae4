// The parts of the extension module. Each adds its classes and functions.
#pragma once

#include <nanobind/nanobind.h>

namespace fast::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
void bind_group(nb::module_& module);
void bind_members(nb::module_& module);
void bind_observer(nb::module_& module);
void bind_options(nb::module_& module);
void bind_rule(nb::module_& module);
void bind_topology(nb::module_& module);
void bind_worker(nb::module_& module);

}  // namespace fast::python
