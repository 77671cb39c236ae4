// What the ranks of a group use to agree beside training.
#pragma once

#include <fast/exchange/group.hpp>

#include <memory>

#include "membership/members.hpp"

namespace fast::exchange {

/// Collective over `everyone`, a group without spares. The coordinator has begun.
std::shared_ptr<membership::Coordinator> open_coordinator(
    const Group& everyone, const membership::RecordBoard::Format& format, const Deadline& deadline);

/// Collective over all ranks, spares among them. With spares, the coordinator of their seats, for
/// one run; else a new one.
std::shared_ptr<membership::Coordinator> coordinator_of_run(
    const Group& group, const membership::RecordBoard::Format& format, const Deadline& deadline);

/// Null without spares.
std::shared_ptr<membership::Members> members_of(const Group& group);

/// Which rank is which worker; without spares, each rank is the worker of its number. Valid while
/// the coordinator lives.
std::shared_ptr<const membership::RankMap> rank_map_of(
    const Group& group, const std::shared_ptr<membership::Coordinator>& coordinator);

}  // namespace fast::exchange
