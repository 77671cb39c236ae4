#include <cstring>
#include <fast/observe/prometheus.hpp>
#include <fast/observe/tensorboard.hpp>
#include <fast/observe/trace.hpp>
#include <string>

#include "c/handles.hpp"

using namespace fast;

namespace {

static_assert(static_cast<int>(Phase::step) == FAST_PHASE_STEP &&
              static_cast<int>(Phase::publish) == FAST_PHASE_PUBLISH &&
              static_cast<int>(Phase::wait) == FAST_PHASE_WAIT &&
              static_cast<int>(Phase::mix) == FAST_PHASE_MIX &&
              static_cast<int>(Phase::commit) == FAST_PHASE_COMMIT);
static_assert(static_cast<int>(MessageEvent::Kind::published) == FAST_MESSAGE_PUBLISHED &&
              static_cast<int>(MessageEvent::Kind::read) == FAST_MESSAGE_READ);
static_assert(static_cast<int>(PeerEvent::Kind::suspected) == FAST_PEER_SUSPECTED &&
              static_cast<int>(PeerEvent::Kind::returned) == FAST_PEER_RETURNED &&
              static_cast<int>(PeerEvent::Kind::rejoined) == FAST_PEER_REJOINED &&
              static_cast<int>(PeerEvent::Kind::healed) == FAST_PEER_HEALED);
static_assert(static_cast<int>(MilestoneEvent::Kind::epoch_ended) == FAST_MILESTONE_EPOCH_ENDED &&
              static_cast<int>(MilestoneEvent::Kind::saved) == FAST_MILESTONE_SAVED);

std::int64_t nanoseconds(Clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

class CallbackObserver final : public Observer {
 public:
  CallbackObserver(const fast_observer_functions& functions, void* user)
      : functions_(functions), user_(user) {}
  ~CallbackObserver() override {
    if (functions_.destroy != nullptr) functions_.destroy(user_);
  }
  CallbackObserver(const CallbackObserver&) = delete;
  CallbackObserver& operator=(const CallbackObserver&) = delete;

  void on_phase(const PhaseEvent& event) noexcept override {
    if (functions_.on_phase == nullptr) return;
    const fast_phase_event told{static_cast<fast_phase>(event.phase),
                                event.worker,
                                event.peer,
                                event.round,
                                nanoseconds(event.began),
                                nanoseconds(event.ended)};
    functions_.on_phase(user_, &told);
  }

  void on_message(const MessageEvent& event) noexcept override {
    if (functions_.on_message == nullptr) return;
    const fast_message_event told{static_cast<fast_message_kind>(event.kind),
                                  event.worker,
                                  event.from,
                                  event.fresh ? 1 : 0,
                                  event.sequence,
                                  event.round,
                                  event.age,
                                  nanoseconds(event.at)};
    functions_.on_message(user_, &told);
  }

  void on_peer(const PeerEvent& event) noexcept override {
    if (functions_.on_peer == nullptr) return;
    const fast_peer_event told{static_cast<fast_peer_kind>(event.kind), event.worker, event.peer,
                               event.round, nanoseconds(event.at)};
    functions_.on_peer(user_, &told);
  }

  void on_scalar(const ScalarEvent& event) noexcept override {
    if (functions_.on_scalar == nullptr) return;
    const std::string name(event.name);
    const fast_scalar_event told{name.c_str(), event.value, event.worker, event.round,
                                 nanoseconds(event.at)};
    functions_.on_scalar(user_, &told);
  }

  void on_milestone(const MilestoneEvent& event) noexcept override {
    if (functions_.on_milestone == nullptr) return;
    const std::string text(event.text);
    const fast_milestone_event told{static_cast<fast_milestone_kind>(event.kind),
                                    event.worker,
                                    event.epoch,
                                    text.c_str(),
                                    event.round,
                                    nanoseconds(event.began),
                                    nanoseconds(event.ended)};
    functions_.on_milestone(user_, &told);
  }

  void on_values(const ValuesEvent& event) noexcept override {
    if (functions_.on_values == nullptr) return;
    const std::string name(event.name);
    const fast_values_event told{name.c_str(), event.values.data(), event.values.size(),
                                 event.worker, event.epoch,         event.round};
    functions_.on_values(user_, &told);
  }

 private:
  fast_observer_functions functions_;
  void* user_;
};

/// A caller that was compiled with an older header has fewer functions.
fast_observer_functions observer_functions_of(const fast_observer_functions& given) {
  const std::size_t size = given.struct_size;
  require(size >= sizeof(size_t) && size <= sizeof(fast_observer_functions), ErrorKind::argument,
          "fast_observer_create: struct_size is {}; set it to sizeof(fast_observer_functions), {}",
          size, sizeof(fast_observer_functions));
  fast_observer_functions functions{};
  std::memcpy(&functions, &given, size);
  return functions;
}

/// Makes an observer from `part`'s result.
template <class Part>
fast_status make_observer(fast_observer** observer, const Part& part) {
  return c::guarded([&] {
    c::require_given(observer, "observer");
    *observer = new fast_observer{part()};
  });
}

}  // namespace

namespace fast::c {

void report_scalar(Observer* observer, const char* name, double value, int worker,
                   std::int64_t round) {
  require_given(name, "a scalar's name");
  require(*name != '\0', ErrorKind::argument, "fast.h: a scalar's name is empty; name it");
  if (observer != nullptr) observer->on_scalar({name, value, worker, round, Clock::now()});
}

}  // namespace fast::c

namespace {

std::shared_ptr<Observer> trace_of(const char* directory, int worker,
                                   const observe::TraceOptions& options,
                                   std::string_view function) {
  c::require_given(directory, "directory");
  require(worker >= 0, ErrorKind::argument, "{}: worker {}; a number from 0 on is required",
          function, worker);
  return observe::trace(directory, worker, options, c::log_to_stderr);
}

}  // namespace

extern "C" {

fast_status fast_observer_create(const fast_observer_functions* functions, void* user,
                                 fast_observer** observer) {
  return make_observer(observer, [&] {
    c::require_given(functions, "functions");
    return std::make_shared<CallbackObserver>(observer_functions_of(*functions), user);
  });
}

fast_status fast_observer_trace(const char* directory, int worker, fast_observer** observer) {
  return make_observer(observer,
                       [&] { return trace_of(directory, worker, {}, "fast_observer_trace"); });
}

fast_status fast_observer_trace_rounds(const char* directory, int worker, size_t size_bytes,
                                       int64_t first_round, int64_t last_round,
                                       fast_observer** observer) {
  return make_observer(observer, [&] {
    const char* const name = "fast_observer_trace_rounds";
    require(size_bytes > 0, ErrorKind::argument, "{}: a size of 0 bytes; give some MiB", name);
    require(first_round >= 0 && last_round >= -1, ErrorKind::argument,
            "{}: rounds {} to {}; they count from 0", name, first_round, last_round);
    require(last_round == -1 || first_round <= last_round, ErrorKind::argument,
            "{}: rounds {} to {}; the first must not be after the last", name, first_round,
            last_round);
    observe::TraceOptions options{size_bytes, first_round};
    if (last_round >= 0) options.last_round = last_round;
    return trace_of(directory, worker, options, name);
  });
}

fast_status fast_observer_tensorboard(const char* directory, fast_observer** observer) {
  return make_observer(observer, [&] {
    c::require_given(directory, "directory");
    return observe::tensorboard(directory, c::log_to_stderr);
  });
}

fast_status fast_observer_prometheus(int port, int worker, fast_observer** observer) {
  return fast_observer_prometheus_at("127.0.0.1", port, worker, observer);
}

fast_status fast_observer_prometheus_at(const char* address, int port, int worker,
                                        fast_observer** observer) {
  return make_observer(observer, [&] {
    c::require_given(address, "address");
    require(port >= 1 && port <= 65535, ErrorKind::argument,
            "fast_observer_prometheus: port {}; a port from 1 to 65535 is required", port);
    return observe::prometheus(port, worker, address);
  });
}

void fast_observer_free(fast_observer* observer) { delete observer; }

fast_status fast_options_observe(fast_options* options, const fast_observer* observer) {
  return c::guarded([&] {
    c::require_given(options, "options");
    c::require_given(observer, "observer");
    options->observers.push_back(observer->observer);
  });
}

fast_status fast_observer_scalar(const fast_observer* observer, const char* name, double value,
                                 int worker, int64_t round) {
  return c::guarded([&] {
    c::require_given(observer, "observer");
    c::report_scalar(observer->observer.get(), name, value, worker, round);
  });
}

}  // extern "C"
