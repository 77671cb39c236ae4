#include "mpi/messages.hpp"

#include <climits>
#include <fast/core/error.hpp>

#include "mpi/impl.hpp"

namespace fast::mpi {
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
