#include "sites/site_table.hpp"

#include <algorithm>

namespace fast::sites {
namespace {
constexpr int known_gaps = 20;    ///< so many show whether a site speaks regularly
constexpr double of_late = 0.99;  ///< weight of a gap after each one that follows
}  // namespace

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
  const auto [found, is_new] = entries_.try_emplace(status.site, Entry{status, now});
  if (is_new) return true;
  Entry& entry = found->second;
  const Seconds gap = now - entry.heard;
  entry.longest_gap = std::max(gap, entry.longest_gap * of_late);
  entry.gaps = is_there(entry, now) ? entry.gaps + 1 : 0;
  entry.status = status;
  entry.heard = now;
  entry.lost = false;
  return true;
}

void SiteTable::lose(const std::string& site) {
  const auto found = entries_.find(site);
  if (found != entries_.end()) found->second.lost = true;
}

bool SiteTable::is_there(const Entry& entry, Clock::time_point now) const {
  if (entry.lost) return false;
  const Seconds silent = now - entry.heard;
  if (silent < silence_ / 2) return true;
  const bool is_regular = entry.gaps >= known_gaps && 3 * entry.longest_gap <= silence_ / 2;
  return silent < (is_regular ? silence_ / 2 : silence_);
}

const Status* SiteTable::living(const std::string& site, Clock::time_point now) const {
  const auto found = entries_.find(site);
  if (found == entries_.end() || !is_there(found->second, now)) return nullptr;
  return &found->second.status;
}

std::vector<const Status*> SiteTable::living(Clock::time_point now) const {
  std::vector<const Status*> found;
  for (const auto& [site, entry] : entries_)
    if (site != own_ && is_there(entry, now)) found.push_back(&entry.status);
  return found;
}

std::optional<double> SiteTable::silent_s(const std::string& site, Clock::time_point now) const {
  const auto found = entries_.find(site);
  if (found == entries_.end()) return std::nullopt;
  return Seconds(now - found->second.heard).count();
}

}  // namespace fast::sites
