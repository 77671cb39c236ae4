// Notes as MPI messages.
#pragma once

#include <memory>
#include <vector>

#include "exchange/notes.hpp"
#include "mpi/messages.hpp"

namespace fast::exchange {

class MpiNotes final : public Notes {
 public:
  /// Collective.
  MpiNotes(const mpi::Communicator& communicator, std::size_t size_bytes, const Deadline& deadline);
  /// Waits at most 0.2 s for others to receive the last notes. MPI keeps the rest.
  ~MpiNotes() override;
  MpiNotes(const MpiNotes&) = delete;
  MpiNotes& operator=(const MpiNotes&) = delete;

  bool send(int worker, std::span<const std::byte> note) override;
  bool receive(std::span<std::byte> note) override;

 private:
  struct UnderWay {
    std::vector<std::byte> bytes;
    mpi::Request request;
    bool failed = false;  ///< MPI has reported an error
  };
  static bool is_idle(UnderWay& note);
  bool all_idle();
  bool begin_to_receive();

  mpi::Messages messages_;
  std::size_t size_bytes_;
  std::vector<std::shared_ptr<UnderWay>> sent_;  ///< by worker; null before the first
  std::shared_ptr<UnderWay> received_;
};

}  // namespace fast::exchange
