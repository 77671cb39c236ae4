#include "c/handles.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <fast/core/version.hpp>

#include "core/message.hpp"

namespace fast::c {
namespace {

std::atomic<bool> run_failed{false};
thread_local std::string last_error;
thread_local fast_status last_status = FAST_OK;

constexpr std::array names{"ok",  "argument", "data",    "topology",    "mismatch", "deadline",
                           "mpi", "resource", "numeric", "peer_failed", "internal", "callback"};

fast_status status_of(ErrorKind kind) {
  return static_cast<fast_status>(static_cast<int>(kind) + 1);
}
static_assert(static_cast<int>(ErrorKind::argument) + 1 == FAST_ERROR_ARGUMENT);
static_assert(static_cast<int>(ErrorKind::deadline) + 1 == FAST_ERROR_DEADLINE);
static_assert(static_cast<int>(ErrorKind::internal) + 1 == FAST_ERROR_INTERNAL);
static_assert(static_cast<int>(DType::f16) == FAST_F16 && static_cast<int>(DType::i64) == FAST_I64);

fast_status remember(fast_status status, const char* text) {
  last_error = text;
  return last_status = status;
}

}  // namespace

fast_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const CallbackError& error) {
    return remember(FAST_ERROR_CALLBACK, error.what());
  } catch (const Error& error) {
    return remember(status_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return remember(FAST_ERROR_RESOURCE, "out of memory");
  } catch (const std::exception& error) {
    return remember(FAST_ERROR_INTERNAL, message_of(error).c_str());
  } catch (...) {
    return remember(FAST_ERROR_INTERNAL, "an exception that is not a std::exception");
  }
}

void note_run(bool failed) noexcept { run_failed = failed; }
bool run_has_failed() noexcept { return run_failed; }

void run_worker(fast_worker_function function, const Group& group, void* user) {
  last_status = FAST_OK;
  last_error.clear();
  fast_group handle{group};
  const int result = function(&handle, user);
  if (result == 0) return;
  if (last_status == FAST_ERROR_PEER_FAILED) throw Error(ErrorKind::peer_failed, last_error);
  throw CallbackError(
      ErrorKind::argument,
      fmt::format("fast_run_local: worker {}'s function returned {}{}{}", group.rank(), result,
                  last_error.empty() ? "" : ": ", last_error));
}

void require_success(int result, const char* callback) {
  if (result == 0) return;
  throw CallbackError(ErrorKind::argument,
                      fmt::format("{}: the caller's function returned {}; 0 is required to go on",
                                  callback, result));
}

std::vector<TensorView> views_of(const fast_tensor* tensors, std::size_t count) {
  require(tensors != nullptr || count == 0, ErrorKind::argument, "fast.h: tensors is NULL");
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < count; ++i) {
    const fast_tensor& tensor = tensors[i];
    require_given(tensor.name, "a tensor's name");
    require(tensor.sides >= 0 && (tensor.shape != nullptr || tensor.sides == 0),
            ErrorKind::argument, "fast.h: tensor \"{}\" has {} sides, its shape is NULL",
            tensor.name, tensor.sides);
    std::underlying_type_t<fast_dtype> dtype{};  // C may put any number into an enum
    std::memcpy(&dtype, &tensor.dtype, sizeof dtype);
    require(dtype >= FAST_F32 && dtype <= FAST_I64, ErrorKind::argument,
            "fast.h: tensor \"{}\" has dtype {}; choose one of fast_dtype", tensor.name, dtype);
    TensorView view{tensor.name,
                    tensor.data,
                    {tensor.shape, tensor.shape + tensor.sides},
                    static_cast<DType>(dtype),
                    tensor.role == FAST_BUFFER ? Role::buffer : Role::parameter,
                    Device{},
                    {}};
    if (tensor.strides != nullptr)
      view.strides.assign(tensor.strides, tensor.strides + tensor.sides);
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace fast::c

using namespace fast;

extern "C" {

const char* fast_version(void) { return version().data(); }
const char* fast_last_error(void) { return c::last_error.c_str(); }
const char* fast_status_name(fast_status status) {
  const auto index = static_cast<std::size_t>(status);
  return index < c::names.size() ? c::names[index] : "unknown";
}

fast_status fast_environment_create(fast_environment** environment) {
  return c::guarded([&] {
    c::require_given(environment, "environment");
    int argc = 0;
    char** argv = nullptr;
    *environment = new fast_environment{std::make_unique<mpi::Environment>(argc, argv)};
  });
}
void fast_environment_free(fast_environment* environment) {
  if (environment != nullptr && c::run_has_failed()) environment->environment->end_as_failed();
  delete environment;
}

fast_status fast_group_world(fast_environment* environment, fast_group** group) {
  return c::guarded([&] {
    c::require_given(environment, "environment");
    c::require_given(group, "group");
    *group = new fast_group{Group(environment->environment->world())};
  });
}
void fast_group_free(fast_group* group) { delete group; }
int fast_group_rank(const fast_group* group) { return group == nullptr ? -1 : group->group.rank(); }
int fast_group_size(const fast_group* group) { return group == nullptr ? -1 : group->group.size(); }

}  // extern "C"
