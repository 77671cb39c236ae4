// Whether a module of PyTorch still has the tensors that it had, and they their memory. It is asked
// in each round: what it compares lies in few cache lines, and Python's garbage collector sees it.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bindings.hpp"

namespace fast::python {
namespace {

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

/// What the method of that name gives; null if it raises a RuntimeError, as sparse tensors do,
/// which have no address.
nb::object given_by(nb::handle tensor, PyObject* method) {
  PyObject* const arguments[] = {tensor.ptr()};
  nb::object result = nb::steal(PyObject_VectorcallMethod(method, arguments, 1, nullptr));
  if (result.is_valid()) return result;
  if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0) nb::raise_python_error();
  PyErr_Clear();
  return result;
}

class Members {
 public:
  /// `parts`: the dicts of a module's parts, each with _parameters, _buffers and _modules.
  /// `places`: of each tensor its address and number of elements. `resting` do not train. `locals`:
  /// of each DTensor, itself and its local tensor. The dicts and local tensors are all looked at in
  /// each call, of the other things `at_once`, in turn.
  Members(const nb::list& parts, const nb::list& tensors, const nb::list& places,
          const nb::list& resting, const nb::list& locals, std::size_t at_once)
      : at_once_(at_once) {
    for (const nb::handle part : parts) add(nb::borrow<nb::dict>(part));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const nb::object place = places[i];
      tensors_.push_back(
          {tensors[i], nb::cast<std::uintptr_t>(place[0]), nb::cast<Py_ssize_t>(place[1])});
    }
    for (const nb::handle one : resting) resting_.push_back(nb::borrow(one));
    for (const nb::handle one : locals) locals_.push_back({one[0], one[1]});
    count_ = std::max(tensors_.size(), resting_.size());
  }

  bool are_the_same() {
    const bool same = has_members() && have_locals() && rest() && are_at_their_places();
    if (same) first_ = first_ + at_once_ < count_ ? first_ + at_once_ : 0;
    return same;
  }

  template <class Visit>
  int visit(const Visit& visited) const {
    for (const Dict& one : dicts_) {
      if (const int stopped = visited(one.owner)) return stopped;
    }
    for (const Tensor& one : tensors_) {
      if (const int stopped = visited(one.tensor)) return stopped;
    }
    for (const auto* several : {&values_, &resting_}) {
      for (const nb::object& one : *several) {
        if (const int stopped = visited(one)) return stopped;
      }
    }
    for (const auto& [tensor, local] : locals_) {
      if (const int stopped = visited(tensor)) return stopped;
      if (const int stopped = visited(local)) return stopped;
    }
    return 0;
  }

 private:
  struct Dict {
    nb::object owner;
    PyObject* kind;
    std::size_t count;  ///< of its values
  };
  struct Tensor {
    nb::object tensor;
    std::uintptr_t address;
    Py_ssize_t elements;
  };

  void add(const nb::dict& part) {
    static PyObject* const kinds[] = {interned("_buffers"), interned("_parameters"),
                                      interned("_modules")};
    for (PyObject* const kind : kinds) {
      const std::size_t first = values_.size();
      for (const auto& [key, value] : nb::cast<nb::dict>(part[nb::handle(kind)]))
        values_.push_back(nb::borrow(value));
      dicts_.push_back({part, kind, values_.size() - first});
    }
  }

  bool has_members() const {
    const nb::object* value = values_.data();
    for (const Dict& one : dicts_) {
      PyObject* const members = PyDict_GetItemWithError(one.owner.ptr(), one.kind);
      if (members == nullptr || !PyDict_Check(members)) {
        PyErr_Clear();
        return false;
      }
      if (static_cast<std::size_t>(PyDict_Size(members)) != one.count) return false;
      for (const auto& [key, now] : nb::borrow<nb::dict>(members)) {
        if (!now.is(*value++)) return false;
      }
    }
    return true;
  }

  bool rest() const {
    static PyObject* const requires_grad = interned("requires_grad");
    const std::size_t end = std::min(resting_.size(), first_ + at_once_);
    for (std::size_t i = first_; i < end; ++i) {
      const nb::object trains = nb::steal(PyObject_GetAttr(resting_[i].ptr(), requires_grad));
      if (!trains.is_valid()) nb::raise_python_error();
      if (trains.ptr() == Py_True) return false;
    }
    return true;
  }

  bool have_locals() const {
    static PyObject* const name = interned("_local_tensor");
    for (const auto& [tensor, local] : locals_) {
      const nb::object now = nb::steal(PyObject_GetAttr(tensor.ptr(), name));
      if (!now.is_valid()) nb::raise_python_error();
      if (!now.is(local)) return false;
    }
    return true;
  }

  bool are_at_their_places() const {
    static PyObject* const data_ptr = interned("data_ptr");
    static PyObject* const numel = interned("numel");
    const std::size_t end = std::min(tensors_.size(), first_ + at_once_);
    for (std::size_t i = first_; i < end; ++i) {
      const Tensor& one = tensors_[i];
      const nb::object address = given_by(one.tensor, data_ptr);
      if (!address.is_valid() || PyLong_AsSize_t(address.ptr()) != one.address) return false;
      const nb::object elements = given_by(one.tensor, numel);
      if (!elements.is_valid() || PyLong_AsSsize_t(elements.ptr()) != one.elements) return false;
    }
    return true;
  }

  std::vector<Dict> dicts_;
  std::vector<nb::object> values_;  ///< of all dicts, in their order
  std::vector<Tensor> tensors_;
  std::vector<nb::object> resting_;
  std::vector<std::pair<nb::object, nb::object>> locals_;
  std::size_t at_once_, count_ = 0, first_ = 0;
};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<Members>(self)->visit(
      [&](const nb::object& one) { return visit(one.ptr(), arg); });
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) *nb::inst_ptr<Members>(self) = Members({}, {}, {}, {}, {}, 0);
  return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

void bind_members(nb::module_& module) {
  nb::class_<Members>(module, "Members", nb::type_slots(slots),
                      "The members of a module's parts, the memory of some of its tensors, and "
                      "that others do not train.")
      .def(nb::init<const nb::list&, const nb::list&, const nb::list&, const nb::list&,
                    const nb::list&, std::size_t>(),
           nb::arg("parts"), nb::arg("tensors"), nb::arg("places"), nb::arg("resting"),
           nb::arg("locals"), nb::arg("at_once"))
      .def("are_the_same", &Members::are_the_same,
           "Of large models, the memory of some tensors is looked at, in the next call that of the "
           "next.");
}

}  // namespace fast::python
