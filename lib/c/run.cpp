#include <fast/exchange/local.hpp>
#include <fast/testing/conformance.hpp>
#include <fast/topology/load.hpp>

#include "c/handles.hpp"

using namespace fast;

namespace {

/// After an error that every worker has, no rank waits for another.
train::Summary train_and_note(const fast_group& group, const TopologyRule& rule,
                              const fast_backend& backend, const data::Splits& data,
                              const train::TrainerOptions& options) {
  try {
    train::Summary summary = train::train(group.group, rule, *backend.backend, data, options);
    c::note_run(false);
    return summary;
  } catch (const Error& error) {
    if (!error.everywhere()) c::note_run(true);
    throw;
  } catch (...) {
    c::note_run(true);
    throw;
  }
}

}  // namespace

extern "C" {

fast_status fast_run_local(int workers, fast_worker_function function, void* user) {
  return c::guarded([&] {
    c::require_given(function, "function");
    require(workers >= 1, ErrorKind::argument, "fast_run_local: {} workers; at least 1 is needed",
            workers);
    local::run(workers, [&](const Group& group) { c::run_worker(function, group, user); });
  });
}

fast_status fast_train(const fast_group* group, const char* topology, fast_backend* backend,
                       const char* data_name, const fast_options* options, const char** summary) {
  thread_local std::string table;
  return c::guarded([&] {
    c::require_given(group, "group");
    std::optional<c::TrainSettings> settings;
    std::optional<TopologyRule> rule;
    data::Splits data;
    agree(group->group.everyone(), Deadline(Seconds(300)), "fast_train", [&] {
      c::require_given(topology, "topology");
      c::require_given(backend, "backend");
      c::require_given(data_name, "data");
      settings = c::train_settings(options);
      rule = topology_on_hosts(topology, group->group.hosts());
      data = data::load(data_name, settings->load);
    });
    const auto result = train_and_note(*group, *rule, *backend, data, settings->trainer);
    table = group->group.has_seat() ? result.to_table() : "";
    if (summary != nullptr) *summary = table.c_str();
  });
}

fast_status fast_check_backend(fast_make_backend make, void* user, const int64_t* sample_shape,
                               int32_t sample_sides, int32_t classes, const char** report) {
  thread_local std::string text;
  return c::guarded([&] {
    c::require_given(make, "make");
    c::require_given(sample_shape, "sample_shape");
    testing::Problem problem;
    problem.sample_shape.assign(sample_shape, sample_shape + sample_sides);
    problem.classes = classes;
    const auto found = testing::check_backend(
        [&](std::uint64_t seed) {
          fast_backend* made = nullptr;
          c::require_success(make(user, seed, &made), "make");
          c::require_given(made, "the backend made");
          const std::unique_ptr<fast_backend> handle(made);
          return std::move(handle->backend);
        },
        problem);
    text = found.to_text();
    if (report != nullptr) *report = text.c_str();
    require(found.passed(), ErrorKind::argument, "fast_check_backend:\n{}", text);
  });
}

}  // extern "C"
