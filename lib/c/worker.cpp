#include <algorithm>
#include <cstring>
#include <fast/exchange/spares.hpp>
#include <fast/topology/load.hpp>
#include <vector>

#include "c/handles.hpp"

using namespace fast;

namespace {

/// A call on a worker; when it throws, the others are told.
template <class Part>
fast_status on(fast_worker* worker, const Part& part) noexcept {
  return c::guarded([&] {
    c::require_given(worker, "worker");
    try {
      part(worker->worker);
    } catch (...) {
      worker->worker.abandon();
      c::note_run(true);
      throw;
    }
  });
}

/// A call that changes nothing; it may fail and be made again.
template <class Part>
fast_status ask(const fast_worker* worker, const Part& part) noexcept {
  return c::guarded([&] {
    c::require_given(worker, "worker");
    part(worker->worker);
  });
}

}  // namespace

extern "C" {

fast_status fast_worker_create(const fast_group* group, const char* topology,
                               const fast_tensor* tensors, size_t tensor_count,
                               const fast_options* options, fast_worker** worker) {
  return c::guarded([&] {
    c::require_given(group, "group");
    c::require_given(worker, "worker");
    std::vector<TensorView> views;
    std::optional<WorkerOptions> wanted;
    std::optional<TopologyRule> rule;
    agree(group->group.everyone(), Deadline(Seconds(300)), "fast_worker_create", [&] {
      c::require_given(topology, "topology");
      wanted = c::worker_options(options);
      rule = topology_on_hosts(topology, group->group.hosts());
      views = c::views_of(tensors, tensor_count);
    });
    std::shared_ptr<Observer> observer = wanted->observer;
    *worker = new fast_worker{Worker(group->group, *rule, std::move(views), std::move(*wanted)),
                              std::move(observer)};
    c::note_run(false);
  });
}

fast_status fast_worker_begin_round(fast_worker* worker) {
  return on(worker, [](Worker& w) { w.begin_round(); });
}

fast_status fast_worker_end_round(fast_worker* worker, double loss, double learning_rate) {
  return on(worker, [&](Worker& w) { w.end_round(loss, {.learning_rate = learning_rate}); });
}

fast_status fast_worker_step(fast_worker* worker, fast_step_function step, void* user,
                             double learning_rate, double* loss) {
  return on(worker, [&](Worker& w) {
    c::require_given(step, "step");
    const double found = w.step(
        [&] {
          double value = 0;
          c::require_success(step(user, &value), "fast_worker_step");
          return value;
        },
        {learning_rate});
    if (loss != nullptr) *loss = found;
  });
}

int fast_worker_rank(const fast_worker* worker) {
  return worker == nullptr ? -1 : worker->worker.rank();
}
int fast_worker_size(const fast_worker* worker) {
  return worker == nullptr ? -1 : worker->worker.size();
}
int64_t fast_worker_round(const fast_worker* worker) {
  return worker == nullptr ? -1 : worker->worker.round();
}

fast_status fast_worker_scalar(const fast_worker* worker, const char* name, double value) {
  return ask(worker, [&](const Worker& w) {
    c::report_scalar(worker->observer.get(), name, value, w.rank(), w.round());
  });
}

fast_status fast_worker_stats(const fast_worker* worker, fast_stats* stats) {
  return ask(worker, [&](const Worker& w) {
    c::require_given(stats, "stats");
    const std::size_t known = std::min(stats->struct_size, sizeof(fast_stats));
    const WorkerStats s = w.stats();
    const fast_stats all{stats->struct_size, s.rounds,  s.reads,         s.fresh_reads,
                         s.rejected,         s.skipped, s.messages_sent, s.messages_held,
                         s.step_s,           s.wait_s,  s.publish_s,     s.mix_s,
                         s.bytes_sent};
    require(known >= sizeof(size_t), ErrorKind::argument,
            "fast_worker_stats: struct_size is {}; set it to sizeof(fast_stats)",
            stats->struct_size);
    std::memcpy(stats, &all, known);
  });
}

fast_status fast_worker_mean_model(const fast_worker* worker, const fast_tensor* out,
                                   size_t tensor_count) {
  return ask(worker, [&](const Worker& w) { w.mean_model(c::views_of(out, tensor_count)); });
}

fast_status fast_worker_consensus_distance(const fast_worker* worker, double* distance) {
  return ask(worker, [&](const Worker& w) {
    c::require_given(distance, "distance");
    *distance = w.consensus_distance();
  });
}

fast_status fast_worker_republish(fast_worker* worker) {
  return on(worker, [](Worker& w) { w.republish(); });
}

fast_status fast_worker_rebind(fast_worker* worker, const fast_tensor* tensors,
                               size_t tensor_count) {
  return c::guarded([&] {
    c::require_given(worker, "worker");
    worker->worker.rebind(c::views_of(tensors, tensor_count));
  });
}

fast_status fast_worker_allow_growth(fast_worker* worker, int64_t first, int64_t every) {
  return on(worker, [&](Worker& w) { w.allow_growth({.first = first, .every = every}); });
}

fast_status fast_worker_finish(fast_worker* worker) {
  return on(worker, [](Worker& w) { w.finish(); });
}

fast_status fast_worker_await_finish(fast_worker* worker) {
  return on(worker, [](Worker& w) { w.await_finish(); });
}

void fast_worker_abandon(fast_worker* worker) {
  if (worker != nullptr) worker->worker.abandon();
}

void fast_worker_free(fast_worker* worker) { delete worker; }

}  // extern "C"

namespace {

fast_status write_workers(const fast_group* group, std::vector<int> (Group::*which)() const,
                          int* workers, std::size_t room, std::size_t* count) {
  return c::guarded([&] {
    c::require_given(group, "group");
    c::require_given(count, "count");
    require(workers != nullptr || room == 0, ErrorKind::argument,
            "fast.h: workers is NULL, but room is {}", room);
    const std::vector<int> found = (group->group.*which)();
    *count = found.size();
    std::copy_n(found.begin(), std::min(room, found.size()), workers);
  });
}

}  // namespace

extern "C" {

fast_status fast_group_with_spares(const fast_group* everyone, int spares, fast_group** group) {
  return c::guarded([&] {
    c::require_given(everyone, "everyone");
    c::require_given(group, "group");
    *group = new fast_group{with_spares(everyone->group, spares)};
  });
}

int fast_launcher_spares(void) { return spares_of_launcher(); }

int fast_group_has_seat(const fast_group* group) {
  return group == nullptr ? -1 : static_cast<int>(group->group.has_seat());
}

fast_status fast_group_replaced(const fast_group* group, int* workers, size_t room, size_t* count) {
  return write_workers(group, &Group::replaced, workers, room, count);
}

fast_status fast_group_joined(const fast_group* group, int* workers, size_t room, size_t* count) {
  return write_workers(group, &Group::joined, workers, room, count);
}

fast_status fast_group_give_up(const fast_group* group) {
  return c::guarded([&] {
    c::require_given(group, "group");
    group->group.disable_collectives();
  });
}

}  // extern "C"
