// Datagrams as MPI messages.
#pragma once

#include <memory>
#include <vector>

#include "membership/gossip.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {

class MpiDatagrams final : public membership::Datagrams {
 public:
  /// Collective.
  MpiDatagrams(const mpi::Communicator& communicator, std::size_t size_bytes,
               const Deadline& deadline);
  /// Waits at most 0.2 s for others to receive the last datagrams. MPI keeps the rest.
  ~MpiDatagrams() override;
  MpiDatagrams(const MpiDatagrams&) = delete;
  MpiDatagrams& operator=(const MpiDatagrams&) = delete;

  bool send(int rank, std::span<const std::byte> datagram) override;
  bool receive(std::span<std::byte> datagram) override;

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
