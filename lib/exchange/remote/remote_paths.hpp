// How remote neighbors reach each other: measured once at start-up; both ends agree.
#pragma once

#include <fast/exchange/exchange.hpp>
#include <memory>
#include <vector>

#include "exchange/remote/replicator.hpp"
#include "mpi/remote_window.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {

enum class RemotePath { none, pull, two_sided };  ///< none: a worker of this host

/// What a worker needs to reach workers of other hosts.
struct RemoteTransports {
  std::vector<RemotePath> paths;              ///< by worker
  std::unique_ptr<mpi::RemoteWindow> window;  ///< each worker's own part of the board
  std::unique_ptr<mpi::Messages> messages;

  RemotePath path(int worker) const { return paths[static_cast<std::size_t>(worker)]; }
};

/// Collective. By worker, the path between it and this worker. `options` name the path or ask for a
/// measurement: all edges of the first two rounds move a part of a slot at the same time. Each pair
/// gets the path that was faster for the sum of both directions. A pair without such an edge gets
/// the path that was faster over all pairs.
std::vector<RemotePath> choose_paths(const mpi::Communicator& communicator,
                                     const RemoteEdges& edges, const mpi::RemoteWindow& window,
                                     const mpi::Messages& messages,
                                     const std::vector<bool>& is_remote,
                                     const ExchangeOptions& options);

}  // namespace fast::exchange
