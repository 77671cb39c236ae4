// Groups of workers: the ranks of MPI, the ranks of an mpi4py communicator, threads.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <fast/core/deadline.hpp>
#include <fast/exchange/local.hpp>
#include <fast/mpi/environment.hpp>
#include <memory>
#include <stdexcept>

#include "bindings.hpp"
#include "errors.hpp"
#include "held.hpp"
#include "mpi/handle.hpp"

namespace fast::python {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

/// MPI for the life of the interpreter.
class Mpi {
 public:
  Mpi() : environment_(std::make_unique<mpi::Environment>(argument_count_, arguments_)) {}

  int rank() const { return environment_->world().rank(); }
  int size() const { return environment_->world().size(); }
  Group world() const { return Group(environment_->world()); }

  /// Waits for all ranks; as a failed rank a few seconds only. Nothing is to be called afterwards.
  void leave(bool failed) {
    if (!failed) return environment_.reset();
    try {  // the destructor asks whether an exception passes
      const std::unique_ptr<mpi::Environment> leaving = std::move(environment_);
      throw std::runtime_error("this rank failed");
    } catch (const std::runtime_error&) {
    }
  }

 private:
  int argument_count_ = 0;
  char** arguments_ = nullptr;
  std::unique_ptr<mpi::Environment> environment_;
};

/// A worker of local::run. What Python raises keeps its kind, so that followers are not reported.
void call_worker(const Held& function, const Group& group) {
  const nb::gil_scoped_acquire gil;
  try {
    function.get()(group);
  } catch (const nb::python_error& error) {
    if (!error.matches(class_of(ErrorKind::peer_failed))) throw;
    throw as_error(error);
  }
}

void run_local(int workers, nb::handle function) {
  const Held held(function);
  const nb::gil_scoped_release released;
  local::run(workers, [&](const Group& group) { call_worker(held, group); });
}

Group group_of_handle(std::size_t address) {
  return Group(mpi::from_handle(reinterpret_cast<const void*>(address)));
}

}  // namespace

void bind_group(nb::module_& module) {
  nb::class_<Group>(module, "Group", "The workers of a run: ranks of MPI, or threads.")
      .def_prop_ro("rank", &Group::rank, "The number of this worker.")
      .def_prop_ro("size", &Group::size, "How many workers there are.")
      .def_prop_ro("name", &Group::name,
                   "\"local\" (threads), \"shared\" (one host) or \"hybrid\".")
      .def_prop_ro("hosts", &Group::hosts, "By rank, the lowest rank of its host.")
      .def(
          "all_gather",
          [](const Group& group, const nb::bytes& own, double deadline_s) {
            std::vector<std::string> all;
            const std::string_view bytes(own.c_str(), own.size());
            {
              const nb::gil_scoped_release released;
              all = group.all_gather(bytes, Deadline(Seconds(deadline_s)), "Group.all_gather");
            }
            nb::list result;
            for (const std::string& part : all) result.append(nb::bytes(part.data(), part.size()));
            return result;
          },
          nb::arg("data"), nb::arg("deadline_s") = 300.0,
          "Collective. The bytes of every worker, by rank.")
      .def(
          "barrier",
          [](const Group& group, double deadline_s) {
            group.barrier(Deadline(Seconds(deadline_s)), "Group.barrier");
          },
          nb::arg("deadline_s") = 300.0, Release(), "Collective. Waits for every worker.");

  nb::class_<Mpi>(module, "Mpi", "MPI, initialized unless the program has done so.")
      .def(nb::init<>(), Release())
      .def_prop_ro("rank", &Mpi::rank)
      .def_prop_ro("size", &Mpi::size)
      .def("world", &Mpi::world, Release(), "Collective. All ranks.")
      .def("leave", &Mpi::leave, nb::arg("failed"), Release(),
           "Waits for all ranks; with `failed`, a few seconds only, and then ends them.");

  module.def("group_of_handle", &group_of_handle, nb::arg("address"), Release(),
             "Collective. The ranks of the MPI_Comm at that address.");
  module.def("run_local", &run_local, nb::arg("workers"), nb::arg("function"),
             "Runs function(group) on so many threads.");
  module.def("mpi_library", &mpi::library_version, "What the MPI library calls itself.");
}

}  // namespace fast::python
