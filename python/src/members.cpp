// Whether a module of PyTorch still has the tensors that it had, and they their memory. It is asked
// in each round, so it makes no lists, and Python's garbage collector sees what it compares.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>

#include "bindings.hpp"

namespace fast::python {
namespace {

bool has_values(const nb::dict& dict, const nb::list& values) {
  if (dict.size() != values.size()) return false;
  std::size_t place = 0;
  for (const auto& [key, value] : dict) {
    if (!value.is(values[place++])) return false;
  }
  return true;
}

/// Whether the method of that name gives this number. Sparse tensors have no address.
bool gives(nb::handle tensor, PyObject* method, nb::handle number) {
  PyObject* const arguments[] = {tensor.ptr()};
  const nb::object result = nb::steal(PyObject_VectorcallMethod(method, arguments, 1, nullptr));
  if (result.is_valid()) return result.equal(number);
  if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0) nb::raise_python_error();
  PyErr_Clear();
  return false;
}

bool is_at(nb::handle tensor, const nb::tuple& place) {
  static PyObject* const data_ptr = PyUnicode_InternFromString("data_ptr");
  static PyObject* const numel = PyUnicode_InternFromString("numel");
  return gives(tensor, data_ptr, place[0]) && gives(tensor, numel, place[1]);
}

/// `owners[i][kinds[i]]` is a dict with these values, by identity.
bool are_the_same(const nb::list& owners, const nb::list& kinds, const nb::list& values,
                  const nb::list& tensors, const nb::list& places, std::size_t first,
                  std::size_t count) {
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const nb::dict owner = nb::borrow<nb::dict>(owners[i]);
    PyObject* const members = PyDict_GetItemWithError(owner.ptr(), nb::handle(kinds[i]).ptr());
    if (members == nullptr || !PyDict_Check(members)) {
      PyErr_Clear();
      return false;
    }
    if (!has_values(nb::borrow<nb::dict>(members), nb::borrow<nb::list>(values[i]))) return false;
  }
  const std::size_t end = std::min(tensors.size(), first + count);
  for (std::size_t i = first; i < end; ++i) {
    if (!is_at(tensors[i], nb::borrow<nb::tuple>(places[i]))) return false;
  }
  return true;
}

}  // namespace

void bind_members(nb::module_& module) {
  module.def(
      "are_the_same", are_the_same,
      nb::sig("def are_the_same(owners: list[dict[str, object]], kinds: list[str], "
              "values: list[list[object]], tensors: list[object], "
              "places: list[tuple[int, int]], first: int, count: int) -> bool"),
      nb::arg("owners"), nb::arg("kinds"), nb::arg("values"), nb::arg("tensors"), nb::arg("places"),
      nb::arg("first"), nb::arg("count"),
      "Whether owners[i][kinds[i]] has values[i], and tensors[i] of PyTorch is at places[i], of "
      "`count` tensors from `first` on: an address and a number of elements.");
}

}  // namespace fast::python
