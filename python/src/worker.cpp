// fast::Worker for Python: no call holds the GIL while it waits.
#include <fast/worker/worker.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <fast/core/error.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "options.hpp"
#include "tensors.hpp"

namespace fast::python {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

DType dtype_by_name(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(DType::i64); ++i) {
    if (fast::name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  fail(ErrorKind::argument, "load_state_dict: element type \"{}\" is unknown", name);
}

/// (name, dtype, shape, bytes)
nb::tuple saved_tensor(const TensorView& view) {
  return nb::make_tuple(view.name, std::string(name(view.dtype)), view.shape,
                        nb::bytes(view.data, view.size_bytes()));
}

TensorView restored_tensor(nb::handle saved, const nb::bytes& bytes) {
  TensorView view;
  view.name = nb::cast<std::string>(saved[0]);
  view.dtype = dtype_by_name(nb::cast<std::string>(saved[1]));
  view.shape = nb::cast<std::vector<std::int64_t>>(saved[2]);
  view.data = const_cast<char*>(bytes.c_str());
  require(view.size_bytes() == bytes.size(), ErrorKind::data,
          "load_state_dict: {} has {} bytes, {} are required; the file is damaged", describe(view),
          bytes.size(), view.size_bytes());
  return view;
}

/// A worker and the Python objects whose memory it uses.
class PythonWorker {
 public:
  /// Collective. An argument that is no good on one worker ends all of them; `fault` is None or the
  /// exception of an argument that Python has found to be so.
  PythonWorker(const Group& group, nb::handle rule, nb::handle tensors, nb::handle values,
               nb::handle hooks, nb::handle fault) {
    WorkerOptions options;
    const TopologyRule* topology = nullptr;
    Tensors frozen;  // that the constructor alone uses
    std::exception_ptr failure;
    try {
      if (!fault.is_none()) throw as_error(fault);
      options = options_of(values, hooks);
      own_ = tensors_of(tensors);
      frozen = bytes_of(hooks["frozen"]);
      options.frozen = frozen.views;
      options.accelerator = accelerator_of(own_.views, options.deadline);
      topology = nb::cast<TopologyRule*>(rule);
    } catch (const nb::python_error& error) {
      failure = std::make_exception_ptr(as_error(error));
    } catch (...) {
      failure = std::current_exception();
    }
    const nb::gil_scoped_release released;
    agree(group.everyone(), Deadline(Seconds(300)), "Worker", [&] {
      if (failure) std::rethrow_exception(failure);
    });
    observer_ = options.observer;
    worker_.emplace(group, *topology, own_.views, std::move(options));
  }
  ~PythonWorker() { close(); }
  PythonWorker(const PythonWorker&) = delete;
  PythonWorker& operator=(const PythonWorker&) = delete;

  Worker& get() {
    require(worker_.has_value(), ErrorKind::argument, "Worker: it has been closed");
    return *worker_;
  }

  /// Leaves, and frees the exchange even if Python still holds this object, as tracebacks do.
  void close() {
    {
      const nb::gil_scoped_release released;
      worker_.reset();
    }
    own_ = {};
  }

  void end_round(std::optional<double> loss, double learning_rate) {
    const StepOptions options{.learning_rate = learning_rate};
    loss ? get().end_round(*loss, options) : get().end_round(options);
  }
  /// Without an observer, does nothing.
  void scalar(const std::string& name, double value) {
    const Worker& worker = get();
    if (!observer_) return;
    const nb::gil_scoped_release released;
    observer_->on_scalar({name, value, worker.rank(), worker.round(), Clock::now()});
  }
  void mean_model(nb::handle out) {
    const Tensors tensors = tensors_of(out);
    const nb::gil_scoped_release released;
    get().mean_model(tensors.views);
  }
  void rebind(nb::handle tensors) {
    Tensors moved = tensors_of(tensors);
    require_same_device(moved.views);
    {
      const nb::gil_scoped_release released;
      get().rebind(moved.views);
    }
    own_ = std::move(moved);
  }
  nb::list state() {
    nb::list saved;
    for (const TensorView& view : get().state()) saved.append(saved_tensor(view));
    return saved;
  }
  void restore(nb::handle saved) {
    std::vector<TensorView> views;
    std::vector<nb::bytes> memory;
    for (const nb::handle each : saved) {
      memory.push_back(nb::cast<nb::bytes>(each[3]));
      views.push_back(restored_tensor(each, memory.back()));
    }
    const nb::gil_scoped_release released;
    get().restore(views);
  }

 private:
  /// The library refuses a model without tensors.
  void require_same_device(const std::vector<TensorView>& moved) const {
    const Device now = device_of(moved), before = device_of(own_.views);
    if (moved.empty() || now == before) return;
    fail(ErrorKind::argument,
         "Worker.rebind: {} is in {}, the worker was made with tensors in {}; make a new Worker",
         describe(moved.front()), describe(now), describe(before));
  }

  Tensors own_;
  std::shared_ptr<Observer> observer_;
  std::optional<Worker> worker_;
};

/// A member function of Worker.
template <auto function>
constexpr auto call = [](PythonWorker& worker) { return (worker.get().*function)(); };

/// "WorkerStats(rounds=3, step_s=0.25)": all fields, in the order of the class.
std::string described(nb::handle self) {
  std::string fields;
  for (const nb::handle each : self.type().attr("__dict__")) {
    const auto name = nb::cast<std::string>(each);
    if (name.starts_with("_")) continue;
    fields += (fields.empty() ? "" : ", ") + name + "=" + nb::repr(self.attr(each)).c_str();
  }
  return nb::cast<std::string>(self.type().attr("__name__")) + "(" + fields + ")";
}

void bind_stats(nb::module_& module) {
  nb::class_<WorkerStats>(module, "WorkerStats", "What a worker has done and where its time went.")
      .def_ro("rounds", &WorkerStats::rounds)
      .def_ro("step_s", &WorkerStats::step_s, "Seconds in the user's own step.")
      .def_ro("wait_s", &WorkerStats::wait_s, "Seconds waiting for neighbors.")
      .def_ro("publish_s", &WorkerStats::publish_s, "Seconds writing publications.")
      .def_ro("mix_s", &WorkerStats::mix_s, "Seconds in the averaging pass.")
      .def_ro("reads", &WorkerStats::reads, "Neighbors' publications combined.")
      .def_ro("fresh_reads", &WorkerStats::fresh_reads, "Of these, not combined before.")
      .def_ro("rejected", &WorkerStats::rejected,
              "Passes repeated because a slot changed meanwhile.")
      .def_ro("skipped", &WorkerStats::skipped, "Neighbors left out of a round.")
      .def_ro("ages", &WorkerStats::ages,
              "Combined publications by age in rounds; the last takes the rest.")
      .def_ro("rejoined", &WorkerStats::rejoined,
              "Times that the worker adopted its neighbors' weights.")
      .def_ro("predecessor_rounds", &WorkerStats::predecessor_rounds,
              "Of a spare: the rounds of the worker before it, or the round that it joined before.")
      .def_ro("joined_at", &WorkerStats::joined_at, "Of a spare: the round in which it began.")
      .def_ro("healed", &WorkerStats::healed, "Rounds whose loss or weights were not finite.")
      .def_ro("messages_sent", &WorkerStats::messages_sent, "Publications times readers.")
      .def_ro("messages_held", &WorkerStats::messages_held)
      .def_ro("bytes_sent", &WorkerStats::bytes_sent, "Payload bytes times readers.")
      .def_ro("lazy_weights", &WorkerStats::lazy_weights,
              "The mixing weights are (I+W)/2, as an option or the algorithm asks for.")
      .def_ro("mean_drift_weight", &WorkerStats::mean_drift_weight,
              "Bound on how far lost neighbors have moved the mean.")
      .def("__repr__", &described);
  nb::class_<Departures>(module, "Departures", "Workers that take no part in training any more.")
      .def_ro("finished", &Departures::finished)
      .def_ro("lost", &Departures::lost)
      .def_ro("left", &Departures::left)
      .def("__repr__", &described);
}

}  // namespace

void bind_worker(nb::module_& module) {
  bind_stats(module);
  nb::class_<PythonWorker>(module, "Worker", "A worker. Used by one thread.")
      .def(nb::init<const Group&, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(),
           nb::arg("group"), nb::arg("topology").none(), nb::arg("tensors").none(),
           nb::arg("values").none(), nb::arg("hooks").none(), nb::arg("fault").none())
      .def_prop_ro("rank", call<&Worker::rank>)
      .def_prop_ro("size", call<&Worker::size>)
      .def_prop_ro("rounds", call<&Worker::round>)
      .def_prop_ro("stats", call<&Worker::stats>)
      .def("begin_round", call<&Worker::begin_round>, Release())
      .def("end_round", &PythonWorker::end_round, nb::arg("loss").none(), nb::arg("learning_rate"),
           Release())
      .def("scalar", &PythonWorker::scalar, nb::arg("name"), nb::arg("value"))
      .def("mean_model", &PythonWorker::mean_model, nb::arg("out"))
      .def("consensus_distance", call<&Worker::consensus_distance>, Release())
      .def("republish", call<&Worker::republish>, Release())
      .def("rebind", &PythonWorker::rebind, nb::arg("tensors"))
      .def(
          "set_schedule",
          [](PythonWorker& worker, const TopologyRule& rule) { worker.get().set_schedule(rule); },
          nb::arg("topology"), Release())
      .def(
          "allow_growth",
          [](PythonWorker& worker, std::int64_t first, std::int64_t every) {
            worker.get().allow_growth({.first = first, .every = every});
          },
          nb::arg("first"), nb::arg("every"), Release())
      .def("state", &PythonWorker::state)
      .def("restore", &PythonWorker::restore, nb::arg("saved"))
      .def("finish", call<&Worker::finish>, Release())
      .def("leave", call<&Worker::leave>, Release())
      .def("await_finish", call<&Worker::await_finish>, Release())
      .def(
          "departed",
          [](PythonWorker& worker, const std::vector<int>& ask) {
            return worker.get().departed(ask);
          },
          nb::arg("ask"), Release())
      .def("close", &PythonWorker::close)
      .def("abandon", call<&Worker::abandon>, Release());
}

}  // namespace fast::python
