// How remote neighbors reach each other: measured once at start-up, both ends agreed.
#pragma once

#include <fast/exchange/exchange.hpp>
#include <vector>

#include "exchange/remote/replicator.hpp"
#include "mpi/messages.hpp"
#include "mpi/remote_window.hpp"

namespace fast::exchange {

enum class RemotePath { none, pull, two_sided };  ///< none: a worker of this host

/// Collective. By worker, the path between it and this one: what `options` say, else the one that
/// moved a part of a slot faster, both directions added, when all edges of the first two rounds
/// were used at once; pairs that have no such edge get the path that was faster altogether.
std::vector<RemotePath> choose_paths(const mpi::Communicator& communicator,
                                     const RemoteEdges& edges, const mpi::RemoteWindow& window,
                                     const mpi::Messages& messages,
                                     const std::vector<bool>& is_remote,
                                     const ExchangeOptions& options);

}  // namespace fast::exchange
