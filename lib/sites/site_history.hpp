// What a site has seen of each other one: which process, whether it keeps others waiting, and what
// was combined of it.
#pragma once

#include <fast/sites/site.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sites/node.hpp"

namespace fast::sites {

class SiteHistory {
 public:
  /// The site takes part in an exchange. True if this process of it did so before.
  bool meet(const Status& site) {
    Entry& entry = entries_[site.site];
    const bool is_known = std::exchange(entry.incarnation, site.incarnation) == site.incarnation;
    if (!is_known) entry.ignored_below = 0;
    if (!is_known && entry.is_gone) {  // after so long, another process gets its own chance
      entry.failures = 0;
      entry.doubted_until = 0;
    }
    entry.is_gone = false;
    return is_known;
  }

  /// It is alive, but it has let this site wait for all of its patience.
  void note_stalled(const Status& site) {
    entries_[site.site].stalled = Stalled{site.incarnation, site.next};
  }

  /// It has made no exchange since note_stalled().
  bool is_stalled(const Status& site) const {
    const auto found = entries_.find(site.site);
    return found != entries_.end() && found->second.stalled == Stalled{site.incarnation, site.next};
  }

  /// It says that it is ahead, and gives no weights that can be taken. It is not believed for the
  /// next 2 exchanges of this site, then 4, 8 and so on, until it gives them.
  void note_gives_nothing(const Status& site) {
    note_stalled(site);
    Entry& entry = entries_[site.site];
    entry.failures = std::min(entry.failures + 1, most_failures);
    entry.doubted_until = exchanges_ + (std::int64_t{1} << entry.failures);
  }
  void note_gives(const std::string& site) {
    entries_[site].failures = 0;
    entries_[site].doubted_until = 0;
  }
  bool is_doubted(const std::string& site) const {
    const auto found = entries_.find(site);
    return found != entries_.end() && exchanges_ < found->second.doubted_until;
  }
  /// Sites of which is_gone(name) is true. What was combined of them still counts in all. Their
  /// processes stay known: they may be back after a long split.
  template <class IsGone>
  void forget(const IsGone& is_gone) {
    for (auto& [name, entry] : entries_) entry.is_gone = is_gone(name);
    if (entries_.size() > most_known)
      std::erase_if(entries_, [](const auto& one) { return one.second.is_gone; });
  }
  /// This site has made one.
  void note_exchange() { ++exchanges_; }

  bool has_stalled() const {
    return std::ranges::any_of(entries_,
                               [](const auto& one) { return one.second.stalled.has_value(); });
  }

  /// Of this process, messages with lower numbers are old: it was apart.
  void ignore_below(const std::string& site, std::int64_t number) {
    entries_[site].ignored_below = number;
  }

  /// False for a message that is old, or not newer than the latest one that was taken.
  bool take(const Received& message) {
    Entry& entry = entries_[message.site];
    const std::int64_t number = message.what.number;
    const bool is_new =
        message.incarnation != entry.taken.incarnation || number > entry.taken.number;
    if (!is_new || number < entry.ignored_below) return false;
    entry.taken = {message.incarnation, number};
    return true;
  }

  /// The message is combined when this site has made `age` rounds more than the other one had.
  void note_read(const Received& message, std::int64_t age) {
    Entry& entry = entries_[message.site];
    ++entry.reads;
    entry.exchange = message.what.number;
    entry.age = age;
    ++ages_[age];
    ++reads_;
  }

  /// Returns what it was told before.
  bool note_far(const std::string& site, bool is_far) {
    return std::exchange(entries_[site].is_far, is_far);
  }

  std::int64_t reads() const { return reads_; }

  /// The median age of what was combined; 0: nothing was.
  double median_age() const {
    std::int64_t before = 0;
    for (const auto& [age, count] : ages_) {
      before += count;
      if (2 * before >= reads_) return static_cast<double>(age);
    }
    return 0;
  }

  /// All that were met and are not forgotten, by their names, without what Node::look_at() sets.
  std::vector<OtherSite> others() const {
    std::vector<OtherSite> result;
    for (const auto& [name, entry] : entries_)
      if (!entry.is_gone)
        result.push_back(
            {.name = name, .reads = entry.reads, .exchange = entry.exchange, .age = entry.age});
    return result;
  }

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
  static constexpr int most_failures = 20;
  static constexpr std::size_t most_known = 1000;

  struct Entry {
    std::uint64_t incarnation = 0;
    std::int64_t reads = 0, exchange = -1, age = 0;  ///< as those of OtherSite
    std::int64_t ignored_below = 0;
    bool is_far = false, is_gone = false;
    int failures = 0;                ///< to give weights
    std::int64_t doubted_until = 0;  ///< an exchange of this site
    Taken taken{};
    std::optional<Stalled> stalled{};
  };
  std::map<std::string, Entry> entries_;
  std::int64_t reads_ = 0, exchanges_ = 0;
  std::map<std::int64_t, std::int64_t> ages_;  ///< how often, by age
};

}  // namespace fast::sites
