// Which other sites are there, and what each has said last.
#pragma once

#include <fast/core/deadline.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sites/wire.hpp"

namespace fast::sites {

/// An incarnation above 0 in bits from this one on is of a process that knew of one before it. Of
/// others, the one that began later is the later one, as far as clocks agree.
inline constexpr unsigned first_generation_bit = 54;

/// Ages are by this machine's steady clock: clocks of sites need not agree. Not thread-safe.
class SiteTable {
 public:
  /// A site that has said nothing for `silence` is not there; or for half of that, if it has spoken
  /// regularly: if that is at least three of the longest gaps of late.
  SiteTable(std::string own, Seconds silence) : own_(std::move(own)), silence_(silence) {}

  /// Takes what a site says. False if the table has heard of a later instance of that site.
  bool hear(const Status& status, Clock::time_point now) {
    for (const auto* names : {&status.known, &status.former})
      for (const auto& [site, incarnation] : *names)
        if (site == own_) note(site, incarnation);
    note(status.site, status.incarnation);
    if (status.incarnation < known(status.site)) return false;
    const auto [found, is_new] = entries_.try_emplace(status.site, Entry{status, now});
    if (is_new) return true;
    Entry& entry = found->second;
    const Seconds gap = now - entry.heard;
    entry.longest_gap = std::max(gap, entry.longest_gap * of_late);
    entry.gaps = is_there(entry, now) ? entry.gaps + 1 : 0;
    if (!is_earlier(status, entry.status)) entry.status = status;
    entry.heard = now;
    entry.lost = false;
    return true;
  }

  /// Of sites that have said nothing for so long, nobody needs to know any more. Incarnations that
  /// have followed another one stay known: a stopped process of the one before may wake.
  static constexpr Seconds remembered{600};
  void forget(Clock::time_point now) {
    std::erase_if(entries_, [&](const auto& one) {
      const auto& [site, entry] = one;
      if (site == own_ || now - entry.heard <= remembered) return false;
      if (known(site) >> first_generation_bit == 0) known_.erase(site);
      return true;
    });
  }

  /// The site has said that it does not hold this any more. It counts as held if the site says so
  /// again.
  void note_gone(const std::string& site, const Publication& what) {
    const auto found = entries_.find(site);
    if (found != entries_.end()) std::erase(found->second.status.newest, what);
  }

  /// The site's process is gone. The site is not there until it says something.
  void lose(const std::string& site) {
    const auto found = entries_.find(site);
    if (found != entries_.end()) found->second.lost = true;
  }

  /// The site as it was heard of last, if it is there. It may be leaving.
  const Status* living(const std::string& site, Clock::time_point now) const {
    const auto found = entries_.find(site);
    if (found == entries_.end() || !is_there(found->second, now)) return nullptr;
    return &found->second.status;
  }

  /// All others that are there, by their names. Some may be leaving.
  std::vector<const Status*> living(Clock::time_point now) const {
    std::vector<const Status*> found;
    for (const auto& [site, entry] : entries_)
      if (site != own_ && is_there(entry, now)) found.push_back(&entry.status);
    return found;
  }

  /// The highest incarnation of each site that has said something, and of this one's name that
  /// anybody has told of.
  const std::map<std::string, std::uint64_t>& known() const { return known_; }

  std::uint64_t known(const std::string& site) const {
    const auto found = known_.find(site);
    return found == known_.end() ? 0 : found->second;
  }

  /// What the site said last, whether it is there or not. Null: nothing, or it is forgotten.
  const Status* latest(const std::string& site) const {
    const auto found = entries_.find(site);
    return found == entries_.end() ? nullptr : &found->second.status;
  }

  /// Seconds since the site said something; none: never, or it is forgotten.
  std::optional<double> silent_s(const std::string& site, Clock::time_point now) const {
    const auto found = entries_.find(site);
    if (found == entries_.end()) return std::nullopt;
    return Seconds(now - found->second.heard).count();
  }

 private:
  static constexpr int known_gaps = 20;    ///< so many show whether a site speaks regularly
  static constexpr double of_late = 0.99;  ///< weight of a gap after each one that follows

  struct Entry {
    Status status;
    Clock::time_point heard;
    Seconds longest_gap{0};  ///< of late
    int gaps = 0;
    bool lost = false;
  };

  /// The same process has said it before the other, and it has come later.
  static bool is_earlier(const Status& status, const Status& other) {
    return status.incarnation == other.incarnation &&
           ((other.begun && !status.begun) || (other.leaving && !status.leaving));
  }

  void note(const std::string& site, std::uint64_t incarnation) {
    std::uint64_t& highest = known_[site];
    highest = std::max(highest, incarnation);
  }

  bool is_there(const Entry& entry, Clock::time_point now) const {
    if (entry.lost) return false;
    const Seconds silent = now - entry.heard;
    if (silent < silence_ / 2) return true;
    const bool is_regular = entry.gaps >= known_gaps && 3 * entry.longest_gap <= silence_ / 2;
    return silent < (is_regular ? silence_ / 2 : silence_);
  }

  std::string own_;
  Seconds silence_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::uint64_t> known_;
};

}  // namespace fast::sites
