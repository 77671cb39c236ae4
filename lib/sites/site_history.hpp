// What a site has seen of each other one: which process, whether it keeps others waiting, and what
// was combined of it.
#pragma once

#include <fast/sites/site.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sites/node.hpp"

namespace fast::sites {

class SiteHistory {
 public:
  /// The site takes part in an exchange. True if this process of it did so before.
  bool meet(const Status& site);
  /// It is alive, but it has let this site wait for all of its patience.
  void note_stalled(const Status& site);
  /// It has made no exchange since note_stalled().
  bool is_stalled(const Status& site) const;
  bool has_stalled() const;
  /// Of this process, messages with lower numbers are old: it was apart.
  void ignore_below(const std::string& site, std::int64_t number);
  /// False for a message that is old, or not newer than the latest one that was taken.
  bool take(const Received& message);
  /// The message is combined when this site has made `age` rounds more than the other one had.
  void note_read(const Received& message, std::int64_t age);
  /// Returns what it was told before.
  bool note_far(const std::string& site, bool is_far);

  std::int64_t reads() const { return reads_; }
  /// The median age of what was combined; 0: nothing was.
  double median_age() const;
  /// All that were met, by their names, without OtherSite::seen_s.
  std::vector<OtherSite> others() const;

 private:
  struct Taken {
    std::uint64_t incarnation = 0;
    std::int64_t number = -1;
  };
  struct Stalled {
    std::uint64_t incarnation;
    std::int64_t next;
    bool operator==(const Stalled&) const = default;
  };
  struct Entry {
    std::uint64_t incarnation = 0;
    std::int64_t reads = 0, exchange = -1, age = 0;  ///< as those of OtherSite
    std::int64_t ignored_below = 0;
    bool is_far = false;
    Taken taken{};
    std::optional<Stalled> stalled{};
  };
  std::map<std::string, Entry> entries_;
  std::int64_t reads_ = 0;
  std::map<std::int64_t, std::int64_t> ages_;  ///< how often, by age
};

}  // namespace fast::sites
