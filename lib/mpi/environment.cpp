#include <fast/mpi/environment.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fast/core/error.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/message.hpp"
#include "core/waits.hpp"
#include "mpi/farewell.hpp"
#include "mpi/impl.hpp"
#include "mpi/implementation.hpp"
#include "mpi/launcher.hpp"
#include "mpi/process_manager.hpp"

namespace fast::mpi {
namespace {

constexpr Seconds longest_settling{10};
constexpr Seconds settling{0.02};

/// What ranks tell each other at the end.
constexpr char failed_mark = '!';

bool on_several_hosts(const std::vector<std::string>& hosts) {
  const auto name = [](std::string_view host) { return host.substr(0, host.find(failed_mark)); };
  return std::ranges::any_of(
      hosts, [&](const std::string& host) { return name(host) != name(hosts.front()); });
}

bool some_have_failed(const std::vector<std::string>& hosts) {
  return std::ranges::any_of(hosts,
                             [](const std::string& host) { return host.ends_with(failed_mark); });
}

std::string host_name() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  check(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
  return {name, static_cast<std::size_t>(length)};
}

std::unique_ptr<Communicator> copy_of_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  return std::make_unique<Communicator>(std::make_shared<Communicator::Impl>(copy));
}

/// The same on all ranks: one prints it.
void require_threads(int provided, bool is_own) {
  if (provided == MPI_THREAD_MULTIPLE) return;
  let_rank_0_print();
  const char* remedy = is_own ? "use a build of MPI that has it"
                              : "initialize MPI by MPI_Init_thread with it, or leave that to FAST";
  throw Error(ErrorKind::mpi,
              fmt::format("Environment: MPI provides thread level {}, MPI_THREAD_MULTIPLE ({}) is "
                          "required; {}",
                          provided, MPI_THREAD_MULTIPLE, remedy),
              true);
}

/// Where the process manager has ended, telling it raises SIGPIPE, by which the rank would die.
void abort_all() {
  std::signal(SIGPIPE, SIG_IGN);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

Environment::Environment(int& argc, char**& argv) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  int provided = MPI_THREAD_SINGLE;
  if (initialized == 0) {
    require_own_place();
    implementation::prepare_transport();
    check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    owner_ = true;
  } else {
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
  }
  require_threads(provided, owner_);
  std::signal(SIGUSR1, SIG_IGN);
  world_ = copy_of_world();
  require_own_process_manager(world_->size(), library_version().c_str());
  leaving_ = copy_of_world();
  hear_farewells(leaving_.get());
  mark_children(world_->rank(), world_->size());
}

Environment::~Environment() { depart(); }

bool Environment::depart() {
  if (!owner_) {
    hear_farewells(nullptr);
    return true;
  }
  owner_ = false;
  const bool failing = failed_ || std::uncaught_exceptions() > 0;
  const Deadline deadline(failing ? patience_ : without_limit);
  bool several_hosts = false, some_failed = false, all_ready = !world_->impl()->without_collectives;
  try {
    require(!all_ready || meet_to_leave(*leaving_, deadline, failing), ErrorKind::deadline,
            "leaving: some ranks have not come");
    if (all_ready) {
      const auto hosts = leaving_->all_gather(
          host_name() + (failing ? std::string(1, failed_mark) : ""), deadline, "leaving");
      several_hosts = on_several_hosts(hosts);
      some_failed = some_have_failed(hosts);
    }
    if (several_hosts) settle();
  } catch (const Error&) {
    if (failing) await_report(world_->impl()->world_ranks);
    if (failing || !some_rank_has_ended()) abort_all();
    all_ready = false;
  } catch (...) {  // a WaitCheck; the caller knows of what
    if (failing) abort_all();
    all_ready = false;
  }
  if (!all_ready || some_call_is_stuck()) {
    world_->disable_collectives();
    leaving_->disable_collectives();
    implementation::report_process_manager();
    return false;
  }
  world_.reset();
  leaving_.reset();
  leave(several_hosts, some_failed);
  return true;
}

/// Makes progress for ranks that still wait for the last messages.
void Environment::settle() const {
  leaving_->barrier(Deadline(longest_settling), "leaving");
  for (const Deadline served(settling); !served.expired();) {
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_->impl()->comm, &flag, MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

namespace {

/// Prints the error. The library's own errors name ranks; a program's errors get the rank here.
void report(const std::exception& error, int rank, int size) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known != nullptr && !known->to_be_reported_by(rank)) return;
  if (leaves_the_report_to_others()) return;
  const bool unplaced = known == nullptr && size > 1;
  const std::string where = unplaced ? fmt::format("rank {} of {}: ", rank, size) : std::string();
  say("error: {}{}\n", where, message_of(error));
}

/// Nothing if MPI cannot be used. The reason is printed then.
std::unique_ptr<Environment> begin(int& argc, char**& argv) {
  try {
    return std::make_unique<Environment>(argc, argv);
  } catch (const std::exception& error) {
    const Started self = started().value_or(Started{});
    report(error, self.rank, self.size);
    return nullptr;
  }
}

}  // namespace

int run(int& argc, char**& argv, const std::function<int(const Communicator& world)>& program) {
  try {
    const std::unique_ptr<Environment> environment = begin(argc, argv);
    if (!environment) return 1;
    try {
      const int status = program(environment->world());
      if (environment->depart()) return status;
      std::fflush(nullptr);
      _exit(status);
    } catch (const std::exception& error) {  // before leaving: that waits for the other ranks
      report(error, environment->world().rank(), environment->world().size());
      throw;
    }
  } catch (const std::exception& error) {
    return 1;
  }
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string whole(text.data());
  std::string line = whole.substr(0, whole.find('\n'));
  std::ranges::replace(line, '\t', ' ');
  return line;
}

}  // namespace fast::mpi
