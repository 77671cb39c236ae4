// What the C interface's handles are, how exceptions become statuses, and options by name.
#pragma once

#include <fast/fast.h>
#include <fast/backend/backend.hpp>
#include <fast/core/observer.hpp>
#include <fast/data/load.hpp>
#include <fast/exchange/group.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/train/trainer.hpp>
#include <fast/worker/worker.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct fast_environment {
  std::unique_ptr<fast::mpi::Environment> environment;
};
struct fast_group {
  fast::Group group;
};
struct fast_observer {
  std::shared_ptr<fast::Observer> observer;
};
struct fast_options {
  std::map<std::string, std::string> values;
  std::vector<std::shared_ptr<fast::Observer>> observers;
};
struct fast_worker {
  fast::Worker worker;
  std::shared_ptr<fast::Observer> observer;  ///< null: nobody is told
};
struct fast_backend {
  std::unique_ptr<fast::Backend> backend;
};

namespace fast::c {

/// What a callback's other number than 0 becomes.
struct CallbackError : Error {
  using Error::Error;
};

/// Of the exception that is being handled; its text goes to fast_last_error().
fast_status status_of_exception() noexcept;

/// Whether this program's latest call of a worker or fast_train() failed: at its end, ranks that
/// wait for this one do not come.
void note_run(bool failed) noexcept;
bool run_has_failed() noexcept;

/// A number other than 0 throws CallbackError.
void require_success(int result, const char* callback);

/// A worker of fast_run_local. Throws what the group is to hear of.
void run_worker(fast_worker_function function, const Group& group, void* user);

template <class Part>
fast_status guarded(const Part& part) noexcept {
  try {
    part();
    return FAST_OK;
  } catch (...) {
    return status_of_exception();
  }
}

template <class Pointer>
void require_given(const Pointer& pointer, const char* what) {
  require(pointer != nullptr, ErrorKind::argument, "fast.h: {} is NULL", what);
}

/// A scalar with the present time. `observer` may be null.
void report_scalar(Observer* observer, const char* name, double value, int worker,
                   std::int64_t round);

void log_to_stderr(LogLevel level, std::string_view text);

std::vector<TensorView> views_of(const fast_tensor* tensors, std::size_t count);

// Settings by name.

/// Throws Error(argument) on a name that is none of a worker's, or a value that is no good.
WorkerOptions worker_options(const fast_options* options);

struct TrainSettings {
  train::TrainerOptions trainer;
  data::LoadOptions load;
};
TrainSettings train_settings(const fast_options* options);

}  // namespace fast::c
