#include "sites/site_ranks.hpp"

#include <fast/core/error.hpp>

#include <algorithm>
#include <set>

#include "exchange/group_impl.hpp"
#include "sites/reduced_ranks.hpp"
#include "sites/shared_ranks.hpp"

namespace fast::sites {

std::unique_ptr<SiteRanks> make_ranks(const Group& group, const ParameterLayout& model,
                                      Seconds longest) {
  const std::vector<int> hosts = group.hosts();
  const bool on_one_host = std::set<int>(hosts.begin(), hosts.end()).size() == 1;
  if (!on_one_host) return std::make_unique<ReducedRanks>(group, model, longest);
  const auto allocate = [group, longest](std::size_t bytes) {
    return group.allocate(bytes, Deadline(longest));
  };
  exchange::ExitReports lost = exchange::exit_reports(group);
  if (lost.all) lost.all = [group] { return group.died(); };
  GroupImpl::of(group).skip_prefault();  // most of it is that of the leading rank
  return std::make_unique<SharedRanks>(
      SharedRanks::Place{group.rank(), allocate(SharedRanks::part_bytes(model)), std::move(lost),
                         allocate},
      model, longest);
}

}  // namespace fast::sites
