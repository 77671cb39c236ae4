// Reads of other ranks' memory by messages, for an MPI whose one-sided reads cannot be used.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fast/mpi/communicator.hpp>
#include <memory>
#include <mutex>
#include <thread>

#include "mpi/request.hpp"

namespace fast::mpi {

/// A thread of each rank answers the questions of the others: it sends the bytes that they ask for.
/// All messages are synchronous. If one is not received, the communicator stays, so that no later
/// communicator receives it.
class ReadServer {
 public:
  /// Not collective: the first questions wait until all ranks have come. `own` is a communicator of
  /// this object alone. The memory [base, base + size_bytes) must outlive the object.
  ReadServer(const Communicator& own, const std::byte* base, std::size_t size_bytes);
  ReadServer(const ReadServer&) = delete;
  ReadServer& operator=(const ReadServer&) = delete;
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

}  // namespace fast::mpi
