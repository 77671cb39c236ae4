#include "exchange/seats/seated_group.hpp"

#include <algorithm>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <fast/exchange/spares.hpp>

#include "core/contains.hpp"
#include "exchange/open_coordinator.hpp"

namespace fast {
namespace exchange {

SeatedGroup::SeatedGroup(Group everyone, int spares, const Deadline& deadline)
    : everyone_(std::move(everyone)) {
  const int seats = everyone_.size() - spares;
  const bool founds = everyone_.rank() < seats;
  auto same = GroupImpl::of(everyone_).subgroup(founds ? 0 : 1, deadline);
  if (founds) founders_ = GroupImpl::group(std::move(same));
  if (!founds) GroupImpl::of(everyone_).skip_prefault();
  members_ = std::make_shared<membership::Members>(
      open_coordinator(everyone_, membership::record_format(), deadline), seats);
}

int SeatedGroup::rank() const {
  return members_->map().own_seat().value_or(members_->map().rank());
}

std::vector<int> SeatedGroup::hosts() const {
  const std::vector<int> all = everyone_.hosts();
  const int own = all[static_cast<std::size_t>(everyone_.rank())];
  std::vector<int> hosts = all;
  hosts.resize(static_cast<std::size_t>(size()));
  for (int seat = members_->map().founders(); seat < size(); ++seat) {
    const int holder = std::max(0, members_->map().holder(seat));
    hosts[static_cast<std::size_t>(seat)] = all[static_cast<std::size_t>(holder)];
  }
  if (rank() < size()) hosts[static_cast<std::size_t>(rank())] = own;
  return hosts;
}

std::vector<std::string> SeatedGroup::all_gather(std::string_view bytes, const Deadline& deadline,
                                                 std::string_view purpose) {
  require(founders_.has_value(), ErrorKind::internal,
          "{}: a spare takes no part in calls that are collective over the workers", purpose);
  return founders_->all_gather(bytes, deadline, purpose);
}

std::vector<int> SeatedGroup::died() const {
  std::vector<int> seats;
  const std::vector<int> ranks = everyone_.died();
  for (int seat = 0; seat < size(); ++seat) {
    if (contains(ranks, members_->map().holder(seat))) seats.push_back(seat);
  }
  return seats;
}

void SeatedGroup::disable_collectives() {
  everyone_.disable_collectives();
  if (founders_) founders_->disable_collectives();
}

}  // namespace exchange

Group with_spares(const Group& everyone, int spares, Seconds deadline) {
  require(spares >= 0 && spares < everyone.size(), ErrorKind::argument,
          "spares: {} of {} ranks; at least one rank must train, start more", spares,
          everyone.size());
  if (spares == 0) return everyone;
  return GroupImpl::group(
      std::make_shared<exchange::SeatedGroup>(everyone, spares, Deadline(deadline)));
}

int spares_of_launcher() {
  const char* asked = std::getenv("FASTRUN_SPARES");
  return asked == nullptr ? 0 : std::max(0, std::atoi(asked));
}

}  // namespace fast
