#include "sites/site_table.hpp"

#include <algorithm>

namespace fast::sites {

void SiteTable::note(const std::string& site, std::uint64_t incarnation) {
  std::uint64_t& highest = known_[site];
  highest = std::max(highest, incarnation);
}

std::uint64_t SiteTable::known(const std::string& site) const {
  const auto found = known_.find(site);
  return found == known_.end() ? 0 : found->second;
}

bool SiteTable::hear(const Status& status, Clock::time_point now) {
  for (const auto& [site, incarnation] : status.known)
    if (site == own_) note(site, incarnation);
  note(status.site, status.incarnation);
  if (status.incarnation < known(status.site)) return false;
  entries_.insert_or_assign(status.site, Entry{status, now});
  return true;
}

const Status* SiteTable::living(const std::string& site, Clock::time_point now) const {
  const auto found = entries_.find(site);
  if (found == entries_.end() || now - found->second.heard >= silence_) return nullptr;
  return &found->second.status;
}

std::vector<const Status*> SiteTable::living(Clock::time_point now) const {
  std::vector<const Status*> found;
  for (const auto& [site, entry] : entries_)
    if (site != own_ && now - entry.heard < silence_) found.push_back(&entry.status);
  return found;
}

std::optional<double> SiteTable::silent_s(const std::string& site, Clock::time_point now) const {
  const auto found = entries_.find(site);
  if (found == entries_.end()) return std::nullopt;
  return Seconds(now - found->second.heard).count();
}

}  // namespace fast::sites
