// A worker's options from Python: those of the table by name, the rest as objects.
#pragma once

#include <nanobind/nanobind.h>

#include <fast/worker/worker.hpp>

namespace fast::python {

/// `values` maps names of rows to lists of texts. `hooks` may have observer, log, on_round,
/// on_suspect, on_healed, and algorithm for a rule that is an object. Throws Error(argument) on
/// unknown names and values that are not allowed.
WorkerOptions options_of(nanobind::handle values, nanobind::handle hooks);

/// Calls function(level, text); what it raises goes to sys.unraisablehook. Nobody for None.
LogSink log_to(nanobind::handle function);

}  // namespace fast::python
