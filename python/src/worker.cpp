// fast::Worker for Python: no call holds the GIL while it waits.
#include <fast/sites/site.hpp>
#include <fast/worker/worker.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fast/core/error.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "errors.hpp"
#include "options.hpp"
#include "stops.hpp"
#include "tensors.hpp"
#include "waiting.hpp"
#include "worker/start/startup.hpp"

namespace fast::python {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;
using Wait = nb::call_guard<Waiting>;

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
    waiting_together([&] {
      agree(group.everyone(), Deadline(Seconds(300)), "Worker", [&] {
        if (failure) std::rethrow_exception(failure);
      });
      observer_ = options.observer;
      site_ = options.site;
      const algorithm::RuleTraits& traits = options.algorithm.traits();
      needs_everybody_ =
          traits.topology.scope == algorithm::Scope::everybody || traits.timing.average_every > 0;
      combines_every_ = worker::rounds_per_combination(options);
      if (some_stop(group)) stops_.emplace(group, options);
      worker_.emplace(group, *topology, own_.views, std::move(options));
      if (stops_) stops_->join(get().stats().joined_at);
    });
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
      if (worker_ && stops_) stops_->end(worker_->stats().rounds);
      worker_.reset();
      stops_.reset();
      site_.reset();
    }
    own_ = {};
  }

  /// `queue`: the address of a stream of CUDA, see StepOptions.
  void end_round(std::optional<double> loss, double learning_rate,
                 std::optional<std::uintptr_t> queue) {
    StepOptions options{.learning_rate = learning_rate};
    if (queue) options.queue = reinterpret_cast<void*>(*queue);
    loss ? get().end_round(*loss, options) : get().end_round(options);
  }
  /// None of a worker that is no site.
  nb::object site_stats() const {
    if (!site_) return nb::none();
    const sites::SiteStats stats = [this] {
      const nb::gil_scoped_release released;  // handlers of the site log in Python
      return sites::stats_of(*site_);
    }();
    nb::dict result;
    result["exchanges"] = stats.exchanges;
    result["reads"] = stats.reads;
    result["left_out"] = stats.left_out;
    result["waited_s"] = stats.waited_s;
    result["bytes_sent"] = stats.bytes_sent;
    result["bytes_received"] = stats.bytes_received;
    result["mean_drift_weight"] = stats.mean_drift_weight;
    result["median_age"] = stats.median_age;
    nb::dict others;
    for (const sites::OtherSite& other : stats.others) {
      nb::dict one;
      one["seen_s"] = other.seen_s;
      one["delay_s"] = other.delay_s;
      one["round"] = other.round;
      one["reads"] = other.reads;
      one["exchange"] = other.exchange;
      one["age"] = other.age;
      others[other.name.c_str()] = one;
    }
    result["others"] = others;
    return result;
  }
  /// Without an observer, does nothing.
  void scalar(const std::string& name, double value) {
    const Worker& worker = get();
    if (!observer_) return;
    const nb::gil_scoped_release released;
    observer_->on_scalar({name, value, worker.rank(), worker.round(), Clock::now()});
  }
  /// Pairs: a worker, and how many of its steps its weights have.
  std::vector<std::pair<int, std::int64_t>> mean_model(nb::handle out) {
    const Tensors tensors = tensors_of(out);
    const Waiting waiting;
    std::vector<std::pair<int, std::int64_t>> steps;
    for (const MeanPart& part : get().mean_model(tensors.views))
      steps.emplace_back(part.worker, part.steps);
    return steps;
  }
  void rebind(nb::handle tensors) {
    Tensors moved = tensors_of(tensors);
    require_same_device(moved.views);
    {
      const Waiting waiting;
      get().rebind(moved.views);
    }
    own_ = std::move(moved);
  }
  /// The same tensors, in host memory that `owner` keeps.
  void rebind_to(const std::vector<std::uintptr_t>& addresses, nb::object owner) {
    require(addresses.size() == own_.views.size(), ErrorKind::internal,
            "Worker: {} addresses of {} tensors", addresses.size(), own_.views.size());
    std::vector<TensorView> moved = own_.views;
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i].data = reinterpret_cast<void*>(addresses[i]);
    {
      const Waiting waiting;
      get().rebind(moved);
    }
    own_ = {{}, std::move(moved), std::move(owner)};
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
    waiting_together([&] { get().restore(views); });
  }
  /// After a round. Whether all workers stop here: see Stops. False on workers that do not look.
  bool stop_is_due() { return stops_ && stops_->is_due(get().round()); }
  bool looks_for_stop() const { return stops_.has_value(); }
  template <auto function>
  void end() {
    if (stops_) stops_->end(get().stats().rounds);
    (get().*function)();
  }
  /// The rule averages over all workers: none can leave.
  bool needs_everybody() const { return needs_everybody_; }
  std::int64_t combines_every() const { return combines_every_; }

 private:
  /// Some program has asked for it, by fast.on_stop(), before it made its worker.
  static bool some_stop(const Group& group) {
    const auto all = group.everyone().all_gather(stops_are_wanted ? "stops" : "",
                                                 Deadline(Seconds(300)), "Worker");
    return std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.empty(); });
  }
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
  std::shared_ptr<SiteExchange> site_;  ///< null: no site
  std::optional<Worker> worker_;
  std::optional<Stops> stops_;
  bool needs_everybody_ = false;
  std::int64_t combines_every_ = 1;
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
  nb::class_<NeighborShare>(module, "NeighborShare",
                            "What robust averaging has kept of a neighbor's publications.")
      .def_ro("worker", &NeighborShare::worker, "The neighbor.")
      .def_ro("reads", &NeighborShare::reads, "Of its publications.")
      .def_ro("clipped", &NeighborShare::clipped, "Of these, not kept as a whole.")
      .def_ro("kept", &NeighborShare::kept, "The mean share that was kept.")
      .def("__repr__", &described);
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
      .def_ro("device_bytes", &WorkerStats::device_bytes,
              "Memory of the GPU that the worker holds beside the model.")
      .def_ro("lazy_weights", &WorkerStats::lazy_weights,
              "The mixing weights are (I+W)/2, as an option or the algorithm asks for.")
      .def_ro("mean_drift_weight", &WorkerStats::mean_drift_weight,
              "Bound on how far lost neighbors have moved the mean.")
      .def_ro("shares", &WorkerStats::shares, "With the option robust, a NeighborShare each.")
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
  module.def(
      "want_stops", [] { stops_are_wanted = true; },
      "Workers that are made from now on agree on the round of a stop.");
  module.def(
      "ask_to_stop", [] { stop_is_asked = true; }, "Asks all workers to stop, in all processes.");
  nb::class_<PythonWorker>(module, "Worker", "A worker. Used by one thread.")
      .def(nb::init<const Group&, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(),
           nb::arg("group"), nb::arg("topology").none(), nb::arg("tensors").none(),
           nb::arg("values").none(), nb::arg("hooks").none(), nb::arg("fault").none())
      .def_prop_ro("rank", call<&Worker::rank>)
      .def_prop_ro("size", call<&Worker::size>)
      .def_prop_ro("rounds", call<&Worker::round>)
      .def_prop_ro("stats", call<&Worker::stats>)
      .def_prop_ro("site_stats", &PythonWorker::site_stats)
      .def_prop_ro("needs_everybody", &PythonWorker::needs_everybody,
                   "Whether the rule averages over all workers, so that none can leave.")
      .def_prop_ro("combines_every", &PythonWorker::combines_every,
                   "The rounds from one to the next in which weights of workers are combined.")
      .def("begin_round", call<&Worker::begin_round>, Wait())
      .def("end_round", &PythonWorker::end_round, nb::arg("loss").none(), nb::arg("learning_rate"),
           nb::arg("queue").none(), Wait())
      .def("scalar", &PythonWorker::scalar, nb::arg("name"), nb::arg("value"))
      .def("mean_model", &PythonWorker::mean_model, nb::arg("out"))
      .def("consensus_distance", call<&Worker::consensus_distance>, Wait())
      .def("republish", call<&Worker::republish>, Wait())
      .def("rebind", &PythonWorker::rebind, nb::arg("tensors"))
      .def("rebind_to", &PythonWorker::rebind_to, nb::arg("addresses"), nb::arg("owner"))
      .def(
          "set_schedule",
          [](PythonWorker& worker, const TopologyRule& rule) { worker.get().set_schedule(rule); },
          nb::arg("topology"), Wait())
      .def(
          "allow_growth",
          [](PythonWorker& worker, std::int64_t first, std::int64_t every) {
            worker.get().allow_growth({.first = first, .every = every});
          },
          nb::arg("first"), nb::arg("every"), Wait())
      .def("state", &PythonWorker::state)
      .def("restore", &PythonWorker::restore, nb::arg("saved"))
      .def_prop_ro("looks_for_stop", &PythonWorker::looks_for_stop,
                   "Whether stop_is_due() can be true.")
      .def("stop_is_due", &PythonWorker::stop_is_due, Wait(),
           "After a round: whether all workers stop here, as one was asked to.")
      .def("finish", &PythonWorker::end<&Worker::finish>, Wait())
      .def("leave", &PythonWorker::end<&Worker::leave>, Wait())
      .def("await_finish", &PythonWorker::end<&Worker::await_finish>, Wait())
      .def(
          "departed",
          [](PythonWorker& worker, const std::vector<int>& ask) {
            return worker.get().departed(ask);
          },
          nb::arg("ask"), Wait())
      .def("close", &PythonWorker::close)
      .def("abandon", call<&Worker::abandon>, Release());
}

}  // namespace fast::python
