// Looks at the sites of a run from outside: who is there, how far they are, and what they train.
#pragma once

#include <fmt/ranges.h>
#include <unistd.h>

#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/observer.hpp>
#include <fast/core/tensor_view.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sites/bus.hpp"
#include "sites/node.hpp"
#include "sites/state_description.hpp"

namespace fast::sites {

/// A site as it was heard last.
struct Sight {
  Status status;
  double silent_s = 0;  ///< since its last sign of life
};

/// The weights of a site after one of its exchanges.
struct SiteModel {
  std::string site, about;
  std::int64_t round = 0;
  std::vector<TensorView> tensors;              ///< in `memory`, not to be changed
  std::shared_ptr<const AlignedBuffer> memory;  ///< the whole state
};

/// How long an onlooker waits for what.
struct Patience {
  /// All sites have said something by then: they speak every 0.2 s.
  Seconds listening{1.5};
  /// A site that has not said anything for so long is not there.
  Seconds silence{2};
  /// A site that gives nothing more of its model for so long is left aside: it answers between two
  /// steps.
  Seconds answer{60};
};

/// A valid name that no site and no other onlooker has.
inline std::string new_onlooker_name() {
  std::random_device random;
  return fmt::format("onlooker-{:08x}{:08x}", random(), random());
}

/// It sends requests for models, and nothing else: sites do not hear of it. One thread uses it.
class Onlooker {
 public:
  /// `name` is the one that the bus has. States of more bytes than `most_bytes` are not read.
  Onlooker(std::unique_ptr<Bus> bus, const std::string& name, const LogSink& log = {},
           const Patience& patience = {}, std::uint64_t most_bytes = memory_of_machine())
      : run_(bus->run()),
        patience_(patience),
        most_bytes_(most_bytes),
        log_(log),
        node_(std::move(bus), NodeOptions{.site = name,
                                          .about = {},
                                          .silence = patience.silence,
                                          .state_bytes = most_bytes,
                                          .log = log,
                                          .looks_on = true}) {}

  /// Listens, and returns all sites that are there, by their names.
  std::vector<Sight> look() {
    listen({}, Deadline(patience_.listening));
    std::vector<Sight> sights;
    for (const Status& site : node_.living())
      sights.push_back({site, node_.silent_s(site.site).value_or(0)});
    return sights;
  }

  /// Waits until so many sites take part, at most until the deadline. With a round, sites count
  /// that have made so many, also if they have left since, and none that trains has made fewer.
  /// False if the deadline has passed.
  bool await(int sites, std::int64_t round, const Deadline& deadline) {
    listen({}, deadline);  // all that train have said something then
    counted_.clear();
    const auto are_there = [&] { return count(round) && std::cmp_greater_equal(counted(), sites); };
    return node_.wait(are_there, deadline);
  }

  /// How many sites the last await() has counted.
  std::size_t counted() const { return counted_.size(); }

  /// Reads the model of this site, or if the name is empty of the one that has made most rounds. If
  /// that one goes or does not answer, another one is read. Throws Error(resource) when no site is
  /// left to read from, and Error(deadline).
  SiteModel fetch(const std::string& site, const Deadline& deadline) {
    listen(site, deadline);
    while (!deadline.expired()) {
      if (const auto from = furthest(site)) {
        if (auto model = model_of(*from, deadline)) return std::move(*model);
      } else if (is_hopeless(site)) {
        fail_without(site);
      } else {
        node_.wait([] { return false; }, Deadline(until_next_try));
      }
    }
    fail(ErrorKind::deadline,
         "fetch: no site has given its whole model within {:g} s; give it more time",
         deadline.limit_s());
  }

  const std::string& run() const { return run_; }

 private:
  static constexpr Seconds until_next_try{0.5};

  static bool takes_part(const Status& site) { return site.begun && !site.leaving; }

  std::vector<std::string> names_that_are_there() const {
    std::vector<std::string> names;
    for (const Status& site : node_.living()) names.push_back(site.site);
    return names;
  }

  static std::uint64_t memory_of_machine() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }

  /// Until all sites have said something, or the one that is asked for.
  void listen(const std::string& site, const Deadline& deadline) {
    const Deadline longest(patience_.listening);
    node_.wait([&] { return longest.expired() || (!site.empty() && node_.living(site)); },
               deadline);
  }

  /// False if a site that trains does not count.
  bool count(std::int64_t round) {
    if (round == 0) counted_.clear();
    bool all = true;
    for (const Status& site : node_.living()) {
      const bool counts = site.begun && site.round >= round && (round > 0 || !site.leaving);
      if (counts) counted_.insert(site.site);
      all = all && (counts || !takes_part(site));
    }
    return all;
  }

  /// Of those that can be read: the one that has made most rounds. Slow ones are the last.
  std::optional<Status> furthest(const std::string& site) const {
    std::optional<Status> best;
    const auto rank = [&](const Status& status) {
      return std::pair(!slow_.contains(status.site), status.round);
    };
    for (const Status& status : node_.living()) {
      const bool may = takes_part(status) && !refused_.contains(status.site) &&
                       (site.empty() || status.site == site);
      if (may && (!best || rank(status) > rank(*best))) best = status;
    }
    return best;
  }

  /// Null: the site has gone, or gives nothing more.
  std::shared_ptr<const Received> read(const Status& from, const Deadline& deadline) {
    node_.ask_for_state(from.site);
    const auto is_over = [&] {
      const auto now = node_.living(from.site);
      return !now || node_.state(from.site) || too_many_bytes(*now) ||
             node_.state_silent_s(from.site) > patience_.answer.count();
    };
    node_.wait(is_over, deadline);
    const auto state = node_.state(from.site);
    node_.forget_state(from.site);
    if (!state) leave_aside(from.site);
    return state;
  }

  void leave_aside(const std::string& site) {
    const auto now = node_.living(site);
    const auto bytes = now ? too_many_bytes(*now) : std::nullopt;
    if (now) slow_.insert(site);
    if (bytes)
      refused_[site] = fmt::format("its state has {} bytes, more than the {} of this machine",
                                   *bytes, most_bytes_);
    if (log_)
      log_(LogLevel::warning,
           fmt::format("site {} {}", site, now ? "does not give its model" : "has gone"));
  }

  std::optional<SiteModel> model_of(const Status& from, const Deadline& deadline) {
    const auto state = read(from, deadline);
    if (!state) return std::nullopt;
    const auto bytes = static_cast<std::size_t>(state->what.bytes);
    try {
      return SiteModel{from.site, from.about, state->what.round,
                       weights_in({state->bytes->data(), bytes}), state->bytes};
    } catch (const Error& error) {
      refused_[from.site] = error.what();
      return std::nullopt;
    }
  }

  /// Of a state that it publishes and that is not read.
  std::optional<std::uint64_t> too_many_bytes(const Status& from) const {
    for (const Publication& what : from.newest)
      if (what.content == Content::state && what.bytes > most_bytes_) return what.bytes;
    return std::nullopt;
  }

  /// No site that is there can be read now, nor after a while.
  bool is_hopeless(const std::string& site) const {
    return std::ranges::none_of(node_.living(), [&](const Status& status) {
      return !status.leaving && !refused_.contains(status.site) &&
             (site.empty() || status.site == site);
    });
  }

  [[noreturn]] void fail_without(const std::string& site) const {
    const std::vector<std::string> names = names_that_are_there();
    require(!names.empty(), ErrorKind::resource,
            "fetch: no site of the run \"{}\" is there; see whether sites run, and that they have "
            "this run's name",
            run_);
    require(site.empty() || node_.living(site), ErrorKind::resource,
            "fetch: site {} is not there; there are: {}", site, fmt::join(names, ", "));
    std::vector<std::string> why;
    for (const std::string& name : names)
      if (site.empty() || name == site) why.push_back(name + ": " + why_not(name));
    fail(ErrorKind::resource, "fetch: no site gives its model ({}); try again when others train",
         fmt::join(why, "; "));
  }

  std::string why_not(const std::string& site) const {
    const auto found = refused_.find(site);
    return found == refused_.end() ? "it leaves" : found->second;
  }

  std::string run_;
  Patience patience_;
  std::uint64_t most_bytes_;
  LogSink log_;
  Node node_;
  std::set<std::string> counted_;
  std::set<std::string> slow_;                  ///< sites that are asked after all others
  std::map<std::string, std::string> refused_;  ///< sites that are not asked again, and why
};

}  // namespace fast::sites
