// Which other sites are there, and what each has said last.
#pragma once

#include <fast/core/deadline.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sites/wire.hpp"

namespace fast::sites {

/// Ages are by this machine's steady clock: clocks of sites need not agree. Not thread-safe.
class SiteTable {
 public:
  /// A site that has said nothing for `silence` is not there; or for half of that, if it has spoken
  /// regularly: if that is at least three of the longest gaps of late.
  SiteTable(std::string own, Seconds silence) : own_(std::move(own)), silence_(silence) {}

  /// Takes what a site says. False if the table has heard of a later instance of that site.
  bool hear(const Status& status, Clock::time_point now);
  /// The site's process is gone. The site is not there until it says something.
  void lose(const std::string& site);
  /// The site as it was heard of last, if it is there. It may be leaving.
  const Status* living(const std::string& site, Clock::time_point now) const;
  /// All others that are there, by their names. Some may be leaving.
  std::vector<const Status*> living(Clock::time_point now) const;
  /// The highest incarnation of each site that has said something, and of this one's name that
  /// anybody has told of.
  const std::map<std::string, std::uint64_t>& known() const { return known_; }
  std::uint64_t known(const std::string& site) const;
  /// Seconds since the site said something; none: never.
  std::optional<double> silent_s(const std::string& site, Clock::time_point now) const;

 private:
  struct Entry {
    Status status;
    Clock::time_point heard;
    Seconds longest_gap{0};  ///< of late
    int gaps = 0;
    bool lost = false;
  };
  void note(const std::string& site, std::uint64_t incarnation);
  bool is_there(const Entry& entry, Clock::time_point now) const;

  std::string own_;
  Seconds silence_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::uint64_t> known_;
};

}  // namespace fast::sites
