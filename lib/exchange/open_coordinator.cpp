#include "exchange/open_coordinator.hpp"

#include <utility>

#include "exchange/group_impl.hpp"

namespace fast::exchange {

using membership::Coordinator;
using membership::RankMap;
using membership::RecordBoard;

std::shared_ptr<Coordinator> open_coordinator(const Group& everyone,
                                              const RecordBoard::Format& format,
                                              const Deadline& deadline) {
  Region region = everyone.allocate(format.size_bytes(), deadline);
  const std::size_t all_bytes = region.parts.size() * format.size_bytes();
  auto coordinator = std::make_shared<Coordinator>(
      membership::Reach{.rank = everyone.rank(),
                        .parts = std::move(region.parts),
                        .owner = std::move(region.owner),
                        .hosts = everyone.hosts(),
                        .datagrams = GroupImpl::of(everyone).open_datagrams(all_bytes, deadline),
                        .died = [everyone] { return everyone.died(); }},
      format);
  coordinator->start();
  return coordinator;
}

std::shared_ptr<Coordinator> coordinator_of_run(const Group& group,
                                                const RecordBoard::Format& format,
                                                const Deadline& deadline) {
  const auto members = members_of(group);
  if (members && members->coordinator()->claim_for_run()) return members->coordinator();
  return open_coordinator(group.everyone(), format, deadline);
}

std::shared_ptr<membership::Members> members_of(const Group& group) {
  return GroupImpl::of(group).members();
}

std::shared_ptr<const RankMap> rank_map_of(const Group& group,
                                           const std::shared_ptr<Coordinator>& coordinator) {
  if (auto members = members_of(group)) return {members, &members->map()};
  const RecordBoard& board = coordinator->board();
  return std::make_shared<const RankMap>(board, board.size());
}

}  // namespace fast::exchange
