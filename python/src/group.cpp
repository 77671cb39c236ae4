// Groups of workers: the ranks of MPI, the ranks of an mpi4py communicator, threads.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <fast/core/deadline.hpp>
#include <fast/exchange/local.hpp>
#include <fast/exchange/reducer.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/mpi/environment.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "bindings.hpp"
#include "errors.hpp"
#include "exchange/board.hpp"
#include "exchange/group_impl.hpp"
#include "held.hpp"
#include "mpi/interop.hpp"
#include "mpi/process_manager.hpp"
#include "waiting.hpp"
#include "worker/replica_watch.hpp"

namespace fast::python {

using exchange::Board;

namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;
using Wait = nb::call_guard<Waiting>;

/// MPI for the life of the interpreter.
class Mpi {
 public:
  Mpi() : environment_(std::make_unique<mpi::Environment>(argument_count_, arguments_)) {}

  int rank() const { return environment_->world().rank(); }
  int size() const { return environment_->world().size(); }
  std::string place() const { return std::getenv(mpi::place_variable); }
  Group world() const { return Group(environment_->world()); }
  /// The same ranks over a communicator of its own.
  Group apart() const { return Group(environment_->world().split(0, Deadline(Seconds(300)))); }

  /// Waits for all ranks; with `patience_s`, as a failed rank, so long at most. Nothing is to be
  /// called afterwards. What a signal handler raises ends the wait, unless `is_dropped` is true of
  /// it, and then MPI is not finalized.
  void leave(std::optional<double> patience_s, nb::handle is_dropped) {
    const Waiting waiting(is_dropped);
    if (patience_s) environment_->end_as_failed(Seconds(*patience_s));
    environment_.reset();
    waiting.rethrow();
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

/// A collective call without the GIL. Its errors carry the rank in this group.
template <class Call>
auto call_on(const Group& group, const Call& call) {
  try {
    return waiting_together(call);
  } catch (const Error& error) {
    raise_from(error, group.rank());
  }
}

nb::list all_gather(const Group& group, const nb::bytes& own, double deadline_s) {
  const std::string_view bytes(own.c_str(), own.size());
  const std::vector<std::string> all = call_on(group, [&] {
    return group.all_gather(bytes, Deadline(Seconds(deadline_s)), "Group.all_gather");
  });
  nb::list parts;
  for (const std::string& part : all) parts.append(nb::bytes(part.data(), part.size()));
  return parts;
}

/// An all-reduce that stays open.
class Means {
 public:
  Means(Group group, std::size_t count, double deadline_s)
      : group_(std::move(group)), reducer_(call_on(group_, [&] {
          ExchangeOptions options;
          options.deadline = Seconds(deadline_s);
          options.suspect_after = options.deadline;  // all wait for one that is stopped
          return group_.open_reducer(count * sizeof(double), options);
        })) {}
  void average(std::size_t address, std::size_t count) {
    call_on(group_,
            [&] { reducer_->average(std::span(reinterpret_cast<double*>(address), count)); });
  }

 private:
  Group group_;
  std::unique_ptr<Reducer> reducer_;
};

void barrier(const Group& group, double deadline_s) {
  call_on(group, [&] { group.barrier(Deadline(Seconds(deadline_s)), "Group.barrier"); });
}

Group split(const Group& group, int color, double deadline_s) {
  return call_on(group, [&] {
    const auto part = GroupImpl::of(group).subgroup(color, Deadline(Seconds(deadline_s)));
    require(part != nullptr, ErrorKind::argument,
            "Group.split: these workers have spares, whose places change; start no spares");
    return GroupImpl::group(part);
  });
}

Group make_spares(const Group& everyone, int spares, double deadline_s) {
  return call_on(everyone, [&] { return with_spares(everyone, spares, Seconds(deadline_s)); });
}

/// The watch of a replica of several ranks. Its thread calls Python.
class Watch {
 public:
  Watch(const Group& all, const Group& inside, const Group& across, int shards, nb::handle lost,
        nb::handle failed) {
    worker::ReplicaWatch::Ends ends;
    ends.lost = [lost = Held(lost)](const std::string& line) {
      const nb::gil_scoped_acquire gil;
      quietly(lost.get(), [&] { lost.get()(line); });
    };
    ends.failed = [failed = Held(failed)] {
      const nb::gil_scoped_acquire gil;
      quietly(failed.get(), [&] { failed.get()(); });
    };
    call_on(all, [&] {
      watch_ = std::make_shared<worker::ReplicaWatch>(
          all, inside, worker::place_in_replicas(all.rank(), all.size(), shards), std::move(ends));
    });
    GroupImpl::of(across).set_part(watch_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { stop(); }

  bool note_failure(bool may_follow, bool follows) {
    using Cause = worker::ReplicaWatch::Cause;
    return watch_->note_failure(follows      ? Cause::another
                                : may_follow ? Cause::unclear
                                             : Cause::own);
  }
  void set_agreeing(bool agrees) { watch_->set_agreeing(agrees); }
  void stop() {
    if (!watch_) return;
    const nb::gil_scoped_release released;
    watch_->stop();
  }

 private:
  std::shared_ptr<worker::ReplicaWatch> watch_;
};

nb::tuple place_in_replicas(int rank, int ranks, int shards) {
  const auto place = worker::place_in_replicas(rank, ranks, shards);
  return nb::make_tuple(place.index, place.count, place.shard);
}

}  // namespace

void bind_group(nb::module_& module) {
  nb::class_<Means>(module, "Means", "An all-reduce of a group's workers.")
      .def(nb::init<Group, std::size_t, double>(), nb::arg("group"), nb::arg("count"),
           nb::arg("deadline_s") = 300.0, "Collective. Of up to `count` values at a time.")
      .def("average", &Means::average, nb::arg("address"), nb::arg("count"),
           "Collective. The values of 64 bits at the address, in host memory, become the mean of "
           "all workers' ones, the same everywhere.");
  nb::class_<Group>(module, "Group", "The workers of a run: ranks of MPI, or threads.")
      .def_prop_ro("rank", &Group::rank, "The number of this worker.")
      .def_prop_ro("size", &Group::size, "How many workers there are.")
      .def_prop_ro("name", &Group::name,
                   "\"local\" (threads), \"shared\" (one host) or \"hybrid\".")
      .def_prop_ro("hosts", &Group::hosts, "By rank, the lowest rank of its host.")
      .def("all_gather", &all_gather, nb::arg("data"), nb::arg("deadline_s") = 300.0,
           "Collective. The bytes of every worker, by rank.")
      .def("barrier", &barrier, nb::arg("deadline_s") = 300.0,
           "Collective. Waits for every worker.")
      .def("split", &split, nb::arg("color"), nb::arg("deadline_s") = 300.0,
           "Collective. The workers that give the same color (0 or more), in the same order.")
      .def("died", &Group::died, Release(),
           "The workers that died or ended with an error, as fastrun reports them; none without "
           "fastrun.")
      .def_prop_ro("spares", &Group::spares,
                   "Spares that were started with the workers and have not joined.")
      .def_prop_ro("has_seat", &Group::has_seat,
                   "False for a spare without a seat, and for a worker that a spare has replaced.")
      .def("replaced", &Group::replaced, Release(),
           "Workers that a spare has replaced. No call is collective any more if there is one.")
      .def("joined", &Group::joined, Release(),
           "Workers that have joined since training began. No call is collective any more if "
           "there is one.")
      .def("give_up", &Group::disable_collectives, Release(),
           "Workers are gone for good, or have joined: no collective call is made any more, nor "
           "at the end. The end of the program does it, too.");

  nb::class_<Board>(module, "Board",
                    "A number of each worker, which all workers can read at any time.")
      .def(nb::init<const Group&>(), nb::arg("group"), Release())
      .def("set", &Board::set, nb::arg("value"), "The number of this worker. It only grows.")
      .def("words", &Board::words, "The newest known numbers of all workers, by rank; 0 at first.");
  nb::class_<Watch>(module, "ReplicaWatch",
                    "Ends the ranks of a replica together where one is lost, and all where one "
                    "has failed.")
      .def(nb::init<const Group&, const Group&, const Group&, int, nb::handle, nb::handle>(),
           nb::arg("all"), nb::arg("inside"), nb::arg("across"), nb::arg("shards"), nb::arg("lost"),
           nb::arg("failed"),
           "Collective over `all`. `lost` is called with a line, or with an empty one, before the "
           "process ends with the replica; `failed` where another rank has failed, to end it.")
      .def("note_failure", &Watch::note_failure, nb::arg("may_follow"), nb::arg("follows"),
           Release(),
           "This rank has failed. Whether no other rank tells of it. Does not return if a rank of "
           "the replica is lost. The failure may be due to another rank, or is.")
      .def("set_agreeing", &Watch::set_agreeing, nb::arg("agrees"),
           "While it is true, no failure is noted: all ranks agree on what fails on any of them.")
      .def("stop", &Watch::stop, "Other ranks do not matter any more.");
  nb::class_<Mpi>(module, "Mpi", "MPI, initialized unless the program has done so.")
      .def(nb::init<>(), Release())
      .def_prop_ro("rank", &Mpi::rank)
      .def_prop_ro("size", &Mpi::size)
      .def_prop_ro("place", &Mpi::place,
                   "The variable of the environment that says it to children.")
      .def("world", &Mpi::world, Wait(), "Collective. All ranks.")
      .def("apart", &Mpi::apart, Wait(),
           "Collective. All ranks, whose calls do not meet those with which a rank that has "
           "failed leaves.")
      .def("leave", &Mpi::leave, nb::arg("patience_s").none(), nb::arg("is_dropped"),
           "Waits for all ranks; with `patience_s`, so long at most, and then ends them.");

  module.def("group_of_handle", &group_of_handle, nb::arg("address"), Wait(),
             "Collective. The ranks of the MPI_Comm at that address.");
  module.def("with_spares", &make_spares, nb::arg("everyone"), nb::arg("spares"),
             nb::arg("deadline_s") = 300.0, "Collective. The last so many ranks become spares.");
  module.def(
      "has_left_others_waiting", [] { return has_left_others_waiting.load(); },
      "Whether a signal handler has ended a collective call, in which the others still wait.");
  module.def(
      "set_wait_hook", [](const nb::object& hook) { wait_hook = nb::object(hook).release().ptr(); },
      nb::arg("hook"), "Sets what is called ten times a second in each wait of the library.");
  module.def("place_in_replicas", &place_in_replicas, nb::arg("rank"), nb::arg("ranks"),
             nb::arg("shards"),
             "The number of the rank's replica, how many there are, and its shard.");
  module.def("spares_of_launcher", &spares_of_launcher, "The spares that fastrun has started.");
  module.def("run_local", &run_local, nb::arg("workers"), nb::arg("function"),
             "Runs function(group) on so many threads.");
  module.def("mpi_library", &mpi::library_version, "What the MPI library calls itself.");
}

}  // namespace fast::python
