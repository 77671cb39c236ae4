#include "errors.hpp"

#include <array>
#include <exception>
#include <string>

#include "bindings.hpp"

namespace fast::python {
namespace {

struct ErrorClass {
  ErrorKind kind;
  const char* kind_name;
  const char* name;
  PyObject* also;  ///< a base beside Error; null: none
  const char* doc;
};

constexpr std::size_t class_count = static_cast<std::size_t>(ErrorKind::internal) + 1;

std::array<ErrorClass, class_count> error_classes() {
  return {{
      {ErrorKind::argument, "argument", "ArgumentError", PyExc_ValueError,
       "A value is out of range, or a name is unknown."},
      {ErrorKind::data, "data", "DataError", nullptr, "A file is missing, truncated or malformed."},
      {ErrorKind::topology, "topology", "TopologyError", PyExc_ValueError,
       "A topology or its weights do not hold what is required of them."},
      {ErrorKind::mismatch, "mismatch", "MismatchError", PyExc_ValueError,
       "Workers disagree about model or options."},
      {ErrorKind::deadline, "deadline", "DeadlineError", PyExc_TimeoutError,
       "A wait took longer than its deadline."},
      {ErrorKind::mpi, "mpi", "MpiError", nullptr, "An MPI call failed."},
      {ErrorKind::resource, "resource", "ResourceError", nullptr,
       "Memory, /dev/shm, disk or a device does not suffice."},
      {ErrorKind::numeric, "numeric", "NumericError", PyExc_ArithmeticError,
       "A loss or weight is not finite."},
      {ErrorKind::peer_failed, "peer_failed", "PeerFailedError", nullptr,
       "Another worker failed and has reported why."},
      {ErrorKind::internal, "internal", "InternalError", nullptr, "A fault of the library."},
  }};
}

std::array<PyObject*, class_count> made{};  ///< by kind; as long as the process lives

void set_python_error(const Error& error, const nb::object& rank) {
  const nb::object instance = class_of(error.kind())(error.what());
  instance.attr("everywhere") = error.everywhere();
  instance.attr("rank") = rank;
  PyErr_SetObject(class_of(error.kind()).ptr(), instance.ptr());
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    set_python_error(error, nb::none());
  }
}

nb::object make_class(const char* name, const char* doc, const nb::object& bases) {
  const std::string full = std::string("fast_decentralized.") + name;
  PyObject* made_class = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  if (made_class == nullptr) nb::raise_python_error();
  return nb::steal(made_class);
}

/// For attributes of builtin classes, which Python refuses to set. What it shows as their __dict__
/// refers to the dict itself.
void replace_member(nb::handle type, nb::handle name, nb::handle member) {
  const nb::object refers_to = nb::module_::import_("gc").attr("get_referents");
  const nb::dict members = nb::cast<nb::dict>(refers_to(type.attr("__dict__"))[0]);
  if (PyDict_SetItem(members.ptr(), name.ptr(), member.ptr()) != 0) nb::raise_python_error();
  PyType_Modified(reinterpret_cast<PyTypeObject*>(type.ptr()));
}

}  // namespace

void raise_from(const Error& error, int rank) {
  set_python_error(error, nb::int_(rank));
  nb::raise_python_error();
}

nb::handle class_of(ErrorKind kind) { return made.at(static_cast<std::size_t>(kind)); }

Error as_error(nb::handle exception) {
  const nb::str text(exception);
  for (std::size_t i = 0; i < class_count; ++i) {
    if (PyErr_GivenExceptionMatches(exception.ptr(), made.at(i)) == 0) continue;
    return {static_cast<ErrorKind>(i), text.c_str()};
  }
  const nb::str type(nb::handle(exception.type()).attr("__name__"));
  return {ErrorKind::argument, fmt::format("{}: {}", type.c_str(), text.c_str())};
}

void bind_errors(nb::module_& module) {
  const nb::object base = make_class("Error", "What the library raises. `kind` names the family.",
                                     nb::borrow(PyExc_RuntimeError));
  base.attr("kind") = "error";
  base.attr("everywhere") = false;
  base.attr("rank") = nb::none();  // of the worker that raised it, in its group; None: of no worker
  module.attr("Error") = base;
  for (const ErrorClass& each : error_classes()) {
    const nb::object bases = each.also == nullptr
                                 ? nb::object(nb::make_tuple(base))
                                 : nb::object(nb::make_tuple(base, nb::borrow(each.also)));
    nb::object one = make_class(each.name, each.doc, bases);
    one.attr("kind") = each.kind_name;
    module.attr(each.name) = one;
    made.at(static_cast<std::size_t>(each.kind)) = one.release().ptr();
  }
  nb::register_exception_translator(translate);
  module.def("replace_member", &replace_member, nb::arg("type"), nb::arg("name"), nb::arg("member"),
             "Sets an attribute of a builtin class.");
}

}  // namespace fast::python
