// fast::Error as Python exceptions: a class for each kind, below fast_decentralized.Error.
#pragma once

#include <nanobind/nanobind.h>

#include <fast/core/error.hpp>

namespace fast::python {

/// The class for errors of that kind.
nanobind::handle class_of(ErrorKind kind);

/// A Python exception as the library's Error: of its kind, or Error(argument) for another class.
Error as_error(nanobind::handle exception);
inline Error as_error(const nanobind::python_error& error) { return as_error(error.value()); }

/// Raises the error in Python, with the rank of the worker in its group. The caller has the GIL.
[[noreturn]] void raise_from(const Error& error, int rank);

}  // namespace fast::python
