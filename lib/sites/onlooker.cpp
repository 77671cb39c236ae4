#include "sites/onlooker.hpp"

#include <fast/core/error.hpp>

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "sites/state_description.hpp"

namespace fast::sites {
namespace {

constexpr Seconds until_next_try{0.5};

bool takes_part(const Status& site) { return site.begun && !site.leaving; }

std::vector<std::string> names_that_are_there(const Node& node) {
  std::vector<std::string> names;
  for (const Status& site : node.living()) names.push_back(site.site);
  return names;
}

}  // namespace

std::string new_onlooker_name() {
  std::random_device random;
  return fmt::format("onlooker-{:08x}{:08x}", random(), random());
}

std::uint64_t Onlooker::memory_of_machine() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Onlooker::Onlooker(std::unique_ptr<Bus> bus, const std::string& name, const LogSink& log,
                   const Patience& patience, std::uint64_t most_bytes)
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

// Who is there.

/// Until all sites have said something, or the one that is asked for.
void Onlooker::listen(const std::string& site, const Deadline& deadline) {
  const Deadline longest(patience_.listening);
  node_.wait([&] { return longest.expired() || (!site.empty() && node_.living(site)); }, deadline);
}

std::vector<Sight> Onlooker::look() {
  listen({}, Deadline(patience_.listening));
  std::vector<Sight> sights;
  for (const Status& site : node_.living())
    sights.push_back({site, node_.silent_s(site.site).value_or(0)});
  return sights;
}

bool Onlooker::await(int sites, std::int64_t round, const Deadline& deadline) {
  listen({}, deadline);  // all that train have said something then
  counted_.clear();
  const auto are_there = [&] { return count(round) && std::cmp_greater_equal(counted(), sites); };
  return node_.wait(are_there, deadline);
}

/// False if a site that trains does not count.
bool Onlooker::count(std::int64_t round) {
  if (round == 0) counted_.clear();
  bool all = true;
  for (const Status& site : node_.living()) {
    const bool counts = site.begun && site.round >= round && (round > 0 || !site.leaving);
    if (counts) counted_.insert(site.site);
    all = all && (counts || !takes_part(site));
  }
  return all;
}

// Their models.

/// Of those that can be read: the one that has made most rounds. Slow ones are the last.
std::optional<Status> Onlooker::furthest(const std::string& site) const {
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

/// No site that is there can be read now, nor after a while.
bool Onlooker::is_hopeless(const std::string& site) const {
  return std::ranges::none_of(node_.living(), [&](const Status& status) {
    return !status.leaving && !refused_.contains(status.site) &&
           (site.empty() || status.site == site);
  });
}

SiteModel Onlooker::fetch(const std::string& site, const Deadline& deadline) {
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

std::optional<SiteModel> Onlooker::model_of(const Status& from, const Deadline& deadline) {
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

/// Null: the site has gone, or gives nothing more.
std::shared_ptr<const Received> Onlooker::read(const Status& from, const Deadline& deadline) {
  double received = node_.bytes_received();
  auto last = Clock::now();
  const auto gives_nothing = [&] {
    const double now = node_.bytes_received();
    if (now > received) last = Clock::now();
    received = now;
    return Clock::now() - last > patience_.answer;
  };
  node_.ask_for_state(from.site);
  const auto is_over = [&] {
    const auto now = node_.living(from.site);
    return !now || node_.state(from.site) || too_many_bytes(*now) || gives_nothing();
  };
  node_.wait(is_over, deadline);
  const auto state = node_.state(from.site);
  node_.forget_state(from.site);
  if (!state) leave_aside(from.site);
  return state;
}

void Onlooker::leave_aside(const std::string& site) {
  const auto now = node_.living(site);
  const auto bytes = now ? too_many_bytes(*now) : std::nullopt;
  if (now) slow_.insert(site);
  if (bytes)
    refused_[site] = fmt::format("its state has {} bytes, more than the {} of this machine", *bytes,
                                 most_bytes_);
  if (log_)
    log_(LogLevel::warning,
         fmt::format("site {} {}", site, now ? "does not give its model" : "has gone"));
}

/// Of a state that it publishes and that is not read.
std::optional<std::uint64_t> Onlooker::too_many_bytes(const Status& from) const {
  for (const Publication& what : from.newest)
    if (what.content == Content::state && what.bytes > most_bytes_) return what.bytes;
  return std::nullopt;
}

void Onlooker::fail_without(const std::string& site) const {
  const std::vector<std::string> names = names_that_are_there(node_);
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

std::string Onlooker::why_not(const std::string& site) const {
  const auto found = refused_.find(site);
  return found == refused_.end() ? "it leaves" : found->second;
}

}  // namespace fast::sites
