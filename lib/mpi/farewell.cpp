#include "mpi/farewell.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

#include "core/waits.hpp"
#include "mpi/impl.hpp"
#include "mpi/implementation.hpp"
#include "mpi/launcher.hpp"
#include "mpi/request.hpp"

namespace fast::mpi {
namespace {

constexpr int well_tag = 1, reported_tag = 2, silent_tag = 3;
constexpr Seconds patience{3}, longest_report{10};

/// What this process has heard. MPI, too, is one for a process.
struct Heard {
  std::mutex mutex;
  const Communicator* leaving = nullptr;
  MPI_Comm comm = MPI_COMM_NULL;
  std::map<int, int> tags;  ///< by rank
  bool is_silent = false;   ///< this process

  void receive() {
    for (int flag = 1; comm != MPI_COMM_NULL && flag != 0;) {
      MPI_Status found{};
      const int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &found);
      if (code != MPI_SUCCESS || flag == 0) return;
      MPI_Recv(nullptr, 0, MPI_BYTE, found.MPI_SOURCE, found.MPI_TAG, comm, MPI_STATUS_IGNORE);
      tags[found.MPI_SOURCE] = found.MPI_TAG;
    }
  }
};

Heard& heard() {
  static Heard all;
  return all;
}

int farewell_of(bool failed) {
  const std::scoped_lock lock(heard().mutex);
  if (!failed) return well_tag;
  return heard().is_silent ? silent_tag : reported_tag;
}

Request begin_barrier(const Communicator& ranks) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(ranks.impl()->comm, &request), "MPI_Ibarrier");
  return Request(request, "MPI_Ibarrier");
}

std::vector<Request> send_to_all(const Communicator& ranks, int tag) {
  std::vector<Request> sent;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == ranks.rank()) continue;
    check(MPI_Issend(nullptr, 0, MPI_BYTE, rank, tag, ranks.impl()->comm, &request), "MPI_Issend");
    sent.emplace_back(request, "MPI_Issend", rank);
  }
  return sent;
}

/// False after the deadline, or when the launcher reports an end. Ranks that tell that they leave
/// are heard meanwhile: they wait for that.
bool wait_and_hear(Request& request, const Deadline& deadline, const std::vector<int>& all) {
  return request.wait(deadline, all, [] {
    left_among({});
    return false;
  });
}

}  // namespace

void hear_farewells(const Communicator* leaving) {
  const std::scoped_lock lock(heard().mutex);
  heard().leaving = leaving;
  heard().comm = leaving == nullptr ? MPI_COMM_NULL : leaving->impl()->comm;
  heard().tags.clear();
}

void leave_the_report_to_others() {
  const std::scoped_lock lock(heard().mutex);
  heard().is_silent = true;
}

bool leaves_the_report_to_others() {
  const std::scoped_lock lock(heard().mutex);
  return heard().is_silent;
}

void flush_what_is_free() noexcept {
  for (std::FILE* const to : {stdout, stderr}) {
    if (ftrylockfile(to) != 0) continue;
    std::fflush(to);
    funlockfile(to);
  }
}

void leave_because_of_others() noexcept {
  try {
    leave_the_report_to_others();
    const Communicator* leaving = nullptr;
    {
      const std::scoped_lock lock(heard().mutex);
      leaving = heard().leaving;
    }
    if (leaving != nullptr) meet_to_leave(*leaving, Deadline(longest_report), true);
  } catch (const std::exception&) {  // some are gone
  }
  implementation::report_process_manager();
}

void await_report(const std::vector<int>& ranks) {
  const auto is_reported = [&] {
    const std::scoped_lock lock(heard().mutex);
    return !heard().is_silent || !failed_among(ranks).empty();
  };
  try {
    const Deadline deadline(launcher_reports_ends() ? longest_report : Seconds(0));
    look_until(is_reported, deadline, std::chrono::milliseconds(20));
  } catch (...) {  // a WaitCheck: the program ends anyway
  }
}

std::vector<Farewell> left_among(const std::vector<int>& ranks) {
  const std::scoped_lock lock(heard().mutex);
  heard().receive();
  std::vector<Farewell> found;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const auto one = heard().tags.find(ranks[place]);
    if (one != heard().tags.end())
      found.push_back(
          {static_cast<int>(place), one->second == reported_tag, one->second == silent_tag});
  }
  return found;
}

bool meet_to_leave(const Communicator& leaving, const Deadline& deadline, bool failed) {
  const std::vector<int>& all = leaving.impl()->world_ranks;
  Request arrival = begin_barrier(leaving);
  std::vector<Request> sent;
  if (failed || !wait_and_hear(arrival, Deadline(patience), all)) {
    if (!ended_among(all).empty()) return false;
    sent = send_to_all(leaving, farewell_of(failed));
    if (!wait_and_hear(arrival, deadline, all)) return false;
  }
  const bool are_heard =
      std::ranges::all_of(sent, [&](Request& one) { return wait_and_hear(one, deadline, all); });
  if (!are_heard) return false;
  Request end = begin_barrier(leaving);  // after it, no message of this is under way
  return wait_and_hear(end, deadline, all);
}

void leave(bool several_hosts, bool some_failed) {
  if (implementation::process_manager_has_gone()) return;
  // MPI_Finalize waits for all ranks: one that dies in it would be waited for without end.
  const bool may_hang =
      some_failed || launcher_reports_ends() || implementation::finalize_may_hang(several_hosts);
  if (may_hang && implementation::report_process_manager()) return;
  MPI_Finalize();
}

}  // namespace fast::mpi
