// Spare ranks: processes that are started with a run and take the place of workers that are lost.
#pragma once

#include <fast/exchange/group.hpp>

namespace fast {

/// Collective over `everyone`. The last `spares` ranks become spares; the others are the workers of
/// the returned group, each on a *seat*. Group::size() is the number of seats, and Group::rank() is
/// the seat, which is the worker's number in the topology, in data shards and in checkpoints. It is
/// the same for whoever holds the seat. A spare that has none yet has a rank() of size() or more.
///
/// A Worker of this group takes its seat in its constructor. There a spare sleeps until a worker is
/// lost, takes the average of the seat's neighbors, and continues in their round. If it is not
/// needed, the constructor returns when training has ended; see Group::has_seat().
///
/// A spare may also join as one worker more: see Worker::allow_growth().
Group with_spares(const Group& everyone, int spares, Seconds deadline = Seconds(300));

/// The spares that `fastrun --spares` has started; 0 without it.
int spares_of_launcher();

}  // namespace fast
