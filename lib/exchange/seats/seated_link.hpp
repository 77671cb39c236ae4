// A link whose workers are seats, over one whose workers are ranks.
#pragma once

#include <fast/exchange/group.hpp>
#include <memory>

#include "membership/members.hpp"

namespace fast::exchange {

/// `link` is of Group::everyone(). Its plan must be in ranks, see in_ranks(). `notes_progress`:
/// complete() notes what the others then know of this worker's rounds.
Link seated(Link link, std::shared_ptr<membership::Members> members, bool notes_progress = true);

/// The edges of seats as edges of the ranks that hold them at the time of the call. They stand in
/// the order of the seats.
RoundEdges in_ranks(RoundEdges edges, const membership::Members& members);

}  // namespace fast::exchange
