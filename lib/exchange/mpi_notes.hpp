// Notes by messages of MPI.
#pragma once

#include <fast/exchange/group.hpp>
#include <memory>
#include <vector>

#include "mpi/messages.hpp"

namespace fast::exchange {

class MpiNotes final : public Notes {
 public:
  /// Collective.
  MpiNotes(const mpi::Communicator& communicator, std::size_t size_bytes, const Deadline& deadline);
  /// Gives what is under way a moment to arrive; MPI keeps the rest.
  ~MpiNotes() override;
  MpiNotes(const MpiNotes&) = delete;
  MpiNotes& operator=(const MpiNotes&) = delete;

  bool send(int worker, std::span<const std::byte> note) override;
  bool receive(std::span<std::byte> note) override;

 private:
  struct UnderWay {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    bool lost = false;  ///< MPI has failed on it
  };
  static bool is_idle(UnderWay& note);
  bool all_idle();

  mpi::Messages messages_;
  std::size_t size_bytes_;
  std::vector<std::shared_ptr<UnderWay>> sent_;  ///< by worker; null before the first
  std::shared_ptr<UnderWay> coming_;
};

}  // namespace fast::exchange
