#include "mpi/request.hpp"

#include <climits>
#include <fast/core/error.hpp>
#include <thread>
#include <utility>

#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"

namespace fast::mpi {
namespace {

/// A rank that has ended may have sent what is still missing: it arrives within this time.
constexpr Seconds grace_after_end{0.5};

}  // namespace

Request::Request(Request&& other) noexcept
    : request_(std::exchange(other.request_, MPI_REQUEST_NULL)),
      call_(other.call_),
      peer_(other.peer_),
      kind_(other.kind_),
      code_(other.code_) {}

Request& Request::operator=(Request&& other) noexcept {
  if (this == &other) return *this;
  give_up();
  request_ = std::exchange(other.request_, MPI_REQUEST_NULL);
  call_ = other.call_;
  peer_ = other.peer_;
  kind_ = other.kind_;
  code_ = other.code_;
  return *this;
}

Request::~Request() { give_up(); }

bool Request::test() {
  int flag = 1;
  if (is_under_way()) code_ = MPI_Test(&request_, &flag, MPI_STATUS_IGNORE);
  if (code_ != MPI_SUCCESS) {
    check(code_, peer_ == no_peer ? call_ : fmt::format("{} with rank {}", call_, peer_));
  }
  return flag != 0;
}

bool wait_until(const std::function<bool()>& done, const Deadline& deadline,
                const std::vector<int>& members, const std::function<bool()>& gives_up) {
  std::optional<Deadline> grace;  // begins when a member has ended
  for (int polls = 0;; ++polls) {
    if (done()) return true;
    if (polls < 200) {
      std::this_thread::yield();
    } else {
      check_wait();
      if (gives_up && gives_up()) return false;
      if (deadline.expired() || (grace && grace->expired())) return false;
      if (!grace && !ended_among(members).empty()) grace.emplace(grace_after_end);
      std::this_thread::sleep_for(std::chrono::microseconds(polls < 1000 ? 20 : 500));
    }
  }
}

void Request::give_up() noexcept {
  if (!is_under_way()) return;
  int finalized = 0, flag = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && kind_ == Kind::receive && MPI_Cancel(&request_) == MPI_SUCCESS) {
    for (const Deadline deadline(cancel_limit); flag == 0 && !deadline.expired();) {
      if (MPI_Test(&request_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    }
  }
  request_ = MPI_REQUEST_NULL;
}

namespace {

int count(std::size_t size_bytes) {
  require(size_bytes <= INT_MAX, ErrorKind::internal,
          "Messages: a message has {} bytes, MPI allows at most {}; send it in parts", size_bytes,
          INT_MAX);
  return static_cast<int>(size_bytes);
}

}  // namespace

Messages::Messages(const Communicator& communicator, const Deadline& deadline)
    : communicator_(duplicate(communicator, deadline, "opening two-sided messages")) {}

Request Messages::send(int rank, int tag, const void* from, std::size_t size_bytes) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Issend(from, count(size_bytes), MPI_BYTE, rank, tag, communicator_.impl()->comm,
                   &request),
        "MPI_Issend");
  return {request, "MPI_Issend", rank};
}

Request Messages::send_expected(int rank, int tag, const void* from, std::size_t size_bytes) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(
      MPI_Isend(from, count(size_bytes), MPI_BYTE, rank, tag, communicator_.impl()->comm, &request),
      "MPI_Isend");
  return {request, "MPI_Isend", rank};
}

Request Messages::receive(int rank, int tag, void* to, std::size_t size_bytes) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Irecv(to, count(size_bytes), MPI_BYTE, rank, tag, communicator_.impl()->comm, &request),
        "MPI_Irecv");
  return {request, "MPI_Irecv", rank, Request::Kind::receive};
}

std::optional<Messages::Unsolicited> Messages::unsolicited() const {
  int flag = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_.impl()->comm, &flag, &status),
        "MPI_Iprobe");
  if (flag == 0) return std::nullopt;
  return Unsolicited{status.MPI_SOURCE, status.MPI_TAG};
}

}  // namespace fast::mpi
