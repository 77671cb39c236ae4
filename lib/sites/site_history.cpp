#include "sites/site_history.hpp"

#include <algorithm>
#include <utility>

namespace fast::sites {

bool SiteHistory::meet(const Status& site) {
  Entry& entry = entries_[site.site];
  const bool is_known = std::exchange(entry.incarnation, site.incarnation) == site.incarnation;
  if (!is_known) entry.ignored_below = 0;
  return is_known;
}

void SiteHistory::note_stalled(const Status& site) {
  entries_[site.site].stalled = Stalled{site.incarnation, site.next};
}

bool SiteHistory::is_stalled(const Status& site) const {
  const auto found = entries_.find(site.site);
  return found != entries_.end() && found->second.stalled == Stalled{site.incarnation, site.next};
}

bool SiteHistory::has_stalled() const {
  return std::ranges::any_of(entries_,
                             [](const auto& one) { return one.second.stalled.has_value(); });
}

void SiteHistory::ignore_below(const std::string& site, std::int64_t number) {
  entries_[site].ignored_below = number;
}

bool SiteHistory::take(const Received& message) {
  Entry& entry = entries_[message.site];
  const std::int64_t number = message.what.number;
  const bool is_new = message.incarnation != entry.taken.incarnation || number > entry.taken.number;
  if (!is_new || number < entry.ignored_below) return false;
  entry.taken = {message.incarnation, number};
  return true;
}

void SiteHistory::note_read(const Received& message, std::int64_t age) {
  Entry& entry = entries_[message.site];
  ++entry.reads;
  entry.exchange = message.what.number;
  entry.age = age;
  ++ages_[age];
  ++reads_;
}

bool SiteHistory::note_far(const std::string& site, bool is_far) {
  return std::exchange(entries_[site].is_far, is_far);
}

double SiteHistory::median_age() const {
  std::int64_t before = 0;
  for (const auto& [age, count] : ages_) {
    before += count;
    if (2 * before >= reads_) return static_cast<double>(age);
  }
  return 0;
}

std::vector<OtherSite> SiteHistory::others() const {
  std::vector<OtherSite> result;
  for (const auto& [name, entry] : entries_)
    result.push_back(
        {.name = name, .reads = entry.reads, .exchange = entry.exchange, .age = entry.age});
  return result;
}

}  // namespace fast::sites
