// Memory of every rank that the other ranks read.
#pragma once

#include <fast/mpi/communicator.hpp>

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mpi/request.hpp"

namespace fast::mpi {

// Reads of other ranks' memory by messages, for an MPI whose one-sided reads cannot be used.

/// A thread of each rank answers the questions of the others: it sends the bytes that they ask for.
/// All messages are synchronous. If one is not received, the communicator stays, so that no later
/// communicator receives it.
class ReadServer {
 public:
  /// Not collective: the first questions wait until all ranks have come. `own` is a communicator of
  /// this object alone. The memory [base, base + size_bytes) must outlive the object.
  ReadServer(const Communicator& own, const std::byte* base, std::size_t size_bytes);
  /// Ends the answers. Questions of others then stay without an answer.
  ~ReadServer();

  /// Starts reading rank `rank`'s bytes [offset, offset + size_bytes) into `to`. Never blocks. Any
  /// thread may call it. A rank that asks for bytes outside of the memory gets no answer.
  Request get(int rank, std::size_t offset, void* to, int size_bytes);

 private:
  struct Question {
    std::uint64_t offset = 0;
    std::int32_t size_bytes = 0;
    std::int32_t tag = 0;   ///< of the answer
    std::int32_t from = 0;  ///< the rank that asks
  };
  struct Asked {
    std::unique_ptr<Question> question;  ///< MPI's until the request is done
    Request request;
  };

  void serve();
  bool answer_one();
  void expect_question();

  Communicator own_;
  const std::byte* base_;
  std::size_t size_bytes_;
  std::mutex asking_;  ///< guards the two below
  std::deque<Asked> asked_;
  int next_tag_ = 0;
  // The thread's:
  Question arriving_;
  Request expected_;  ///< receives into arriving_
  std::deque<Request> answers_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// What an implementation of MPI does well decides how (implementation::reads): an MPI window, a
/// dynamic one, or messages that a thread of the rank that is read answers.
class RemoteWindow {
 public:
  /// Collective. Exposes this rank's `size_bytes` at `base` for passive reads. `keep` owns that
  /// memory.
  RemoteWindow(const Communicator& communicator, std::byte* base, std::size_t size_bytes,
               std::shared_ptr<void> keep, const Deadline& deadline);
  RemoteWindow(const RemoteWindow&) = delete;
  RemoteWindow& operator=(const RemoteWindow&) = delete;
  /// Waits a few seconds for all ranks, then frees the window. If a rank is missing, window and
  /// memory stay, because other ranks may still read: until the ranks meet again (free_retired), or
  /// until the process ends.
  ~RemoteWindow();

  /// Starts reading rank `rank`'s bytes [offset, offset + size_bytes) into `to`. Never blocks.
  /// At most 2³¹ - 1 bytes.
  Request get(int rank, std::size_t offset, void* to, std::size_t size_bytes) const;

 private:
  /// What may outlive this object.
  struct Opened {
    Communicator own;  ///< of this window alone: no other collective call mixes with its barriers
    std::shared_ptr<void> keep;
    MPI_Win window = MPI_WIN_NULL;
    std::unique_ptr<ReadServer> server{};  ///< in place of the window, where messages are better

    int free();
  };
  void create(std::byte* base, std::size_t size_bytes, const Deadline& deadline);

  Communicator communicator_;
  std::shared_ptr<Opened> opened_;
  std::vector<MPI_Aint> bases_;  ///< by rank; 0 unless the window is dynamic
  std::uint64_t number_ = 0;
};

}  // namespace fast::mpi
