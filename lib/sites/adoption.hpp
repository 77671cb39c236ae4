// How a site joins: its name is free, others are there, and the one that is furthest gives it its
// weights. A site that has fallen behind asks for them in the same way.
#pragma once

#include <fast/core/error.hpp>
#include <fast/sites/site.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/message.hpp"
#include "sites/node.hpp"
#include "sites/outer_step.hpp"
#include "sites/site_history.hpp"

namespace fast::sites {

class Adoption {
 public:
  /// Everything outlives it. `about` is equal in all sites of the run.
  Adoption(const SiteOptions& options, const std::string& about, Node& node, SiteHistory& history,
           const OuterStep& outer, const LogSink& log)
      : options_(options),
        about_(about),
        node_(node),
        history_(history),
        outer_(outer),
        log_(log) {}

  /// Listens for a while, then appears. Throws Error(argument) if a living site has this name, and
  /// Error(mismatch) if most of the sites that train have another model or other options.
  void await_name() {
    constexpr Seconds longest{2};
    node_.wait([] { return false; }, Deadline(std::min(options_.silence, longest)));
    require(
        !node_.living(options_.name), ErrorKind::argument,
        "site {}: a site of this name takes part in the run already; choose another name, or end "
        "that one",
        options_.name);
    std::vector<Status> others = node_.living();
    // Of sites that begin together with this one, more may appear in a moment.
    std::erase_if(others, [](const Status& other) { return !other.begun; });
    require_same(std::move(others));
    node_.appear();
  }

  /// Waits until as many sites are there as are expected, or one that trains. Throws
  /// Error(deadline), and Error(mismatch) if most sites have another model or other options.
  void await_others() {
    const auto are_there = [&] {
      const std::vector<Status> others = node_.alike();
      return std::ranges::any_of(others, &Status::begun) ||
             static_cast<int>(others.size()) + 1 >= options_.expect;
    };
    if (!are_there() && log_)
      log_(LogLevel::info,
           fmt::format("site {}: waits until {} sites are there", options_.name, options_.expect));
    const Deadline deadline(longest_start);
    while (!node_.wait(are_there, Deadline(look_again))) {
      require_same(node_.living());  // others may have begun together with this one
      require(
          !deadline.expired(), ErrorKind::deadline,
          "site {}: fewer than {} sites like this one are there after {:g} s; start the others, "
          "or expect fewer",
          options_.name, options_.expect, longest_start.count());
    }
    require_same(node_.living());
  }

  /// Sites that began together with this one, with another model, may train beside it.
  void note_strangers() {
    for (const Status& other : node_.living())
      if (other.about != about_) tell_once(other, "; both leave each other out");
  }

  /// Waits for the state that this site begins with. Null: it begins with its own weights. Throws
  /// Error(deadline) if sites that train do not answer.
  std::shared_ptr<const Received> await_state() {
    const Deadline deadline(longest_start);
    while (const auto from = furthest()) {
      require(!deadline.expired(), ErrorKind::deadline,
              "site {}: after {:g} s no other site has given its weights, though {} are there",
              options_.name, longest_start.count(), node_.living().size());
      require_same(node_.living());
      if (!from->begun) {  // it begins in a moment, or others do
        const auto begins = [&] {
          const auto now = furthest();
          return !now || now->begun;
        };
        node_.wait(begins, Deadline(Seconds(1)));
      } else if (auto state = state_of(*from)) {
        return state;
      }
    }
    require(!history_.has_stalled(), ErrorKind::deadline,
            "site {}: the sites that train give no weights within {:g} s; start it again later",
            options_.name, options_.patience.count());
    return nullptr;
  }

  /// The site that is furthest: of those that train, or else, of all, the first by name. Those that
  /// do not answer are left aside, those that are doubted come last.
  std::optional<Status> furthest() const {
    std::optional<Status> best;
    for (const Status& other : node_.living()) {
      if (!may_give(other)) continue;
      const auto rank = [&](const Status& status) {
        const bool is_believed = !history_.is_doubted(status.site);
        return std::tuple(status.begun, is_believed, status.begun ? status.next : 0);
      };
      if (!best || rank(other) > rank(*best)) best = other;
    }
    if (best && !best->begun && best->site > options_.name) return std::nullopt;
    return best;
  }

  /// Does not wait: the state of a site whose next exchange is after `number`, once it has come,
  /// and null until then. The furthest one is asked, until it gives nothing within the patience.
  std::shared_ptr<const Received> ask_beyond(std::int64_t number) {
    auto from = asks() ? node_.living(asked_) : std::nullopt;
    const auto came = from ? node_.state(asked_) : nullptr;
    auto state = usable(came);
    const bool is_silent = node_.state_silent_s(asked_) > options_.patience.count();
    if (from && !state && (came || is_silent)) history_.note_gives_nothing(*from);
    if (!from || !may_give(*from) || from->next <= number) from = furthest();
    const bool is_beyond = from && is_believed(*from) && from->next > number;
    if (is_beyond && asked_ == from->site) return state;
    ask_none();
    if (!is_beyond) return nullptr;
    node_.ask_for_state(from->site);
    asked_ = from->site;
    return nullptr;
  }
  void ask_none() {
    if (asks()) node_.forget_state(asked_);
    asked_.clear();
  }
  bool asks() const { return !asked_.empty(); }

  /// What it says of its progress counts.
  bool is_believed(const Status& site) const {
    return site.begun && may_give(site) && !history_.is_doubted(site.site);
  }

 private:
  static constexpr Seconds longest_start{300}, look_again{3};
  /// Those that take over so many can still count for long.
  static constexpr std::int64_t most_rounds = most_counted / 2;

  /// Most sites decide: one alone does not keep this one away from several that are as it is. Of
  /// two that wait for others, the first one stays.
  void require_same(std::vector<Status> others) {
    const auto equal = std::ranges::stable_partition(
        others, [&](const Status& other) { return other.about != about_; });
    const auto different = std::ranges::subrange(others.begin(), equal.begin());
    const bool is_first = std::ranges::all_of(different, [&](const Status& other) {
      return !other.begun && other.incarnation > node_.incarnation();
    });
    const std::size_t most = equal.size() + (is_first ? 1 : 0);
    for (const Status& other : different) {
      require(different.size() <= most, ErrorKind::mismatch, "{}", difference_of(other));
      tell_once(other, different.size() <= equal.size()
                           ? "; it is left out, as most sites are as this one"
                           : "; it is left out, as it came later");
    }
  }
  std::string difference_of(const Status& other) const {
    return fmt::format(
        "site {}: the run's site {} has another model or other options: {}; this one has: {}",
        options_.name, printable(other.site), printable(other.about), about_);
  }
  void tell_once(const Status& other, const std::string& consequence) {
    if (told_.insert(other.site).second && log_)
      log_(LogLevel::warning, difference_of(other) + consequence);
  }

  bool may_give(const Status& site) const {
    return !site.leaving && site.about == about_ && site.round <= most_rounds &&
           !history_.is_stalled(site);
  }

  std::shared_ptr<const Received> state_of(const Status& from) {
    node_.ask_for_state(from.site);
    const auto is_over = [&] {
      return node_.state(from.site) != nullptr || !node_.living(from.site);
    };
    // The other site answers between two of its steps. A slow link brings its state in a while.
    bool answers = false;
    double received = 0;
    do {
      received = node_.bytes_received();
      answers = node_.wait(is_over, Deadline(options_.patience));
    } while (!answers && node_.bytes_received() > received);
    const auto came = node_.state(from.site);
    node_.forget_state(from.site);
    auto state = usable(came);
    if (!state && (came || !answers)) history_.note_gives_nothing(from);
    return state;
  }

  /// Null: it is not what a site makes.
  std::shared_ptr<const Received> usable(const std::shared_ptr<const Received>& state) {
    if (!state) return nullptr;
    const Publication& what = state->what;
    const bool is_counted = what.round <= most_rounds && what.round % options_.every == 0 &&
                            what.round / options_.every == what.number;
    if (!is_counted || !outer_.is_finite_state(*state->bytes)) return nullptr;
    history_.note_gives(state->site);
    return state;
  }

  const SiteOptions& options_;
  const std::string& about_;
  Node& node_;
  SiteHistory& history_;
  const OuterStep& outer_;
  const LogSink& log_;
  std::string asked_;           ///< by ask_beyond(); empty: none
  std::set<std::string> told_;  ///< of these, that they are different
};

}  // namespace fast::sites
