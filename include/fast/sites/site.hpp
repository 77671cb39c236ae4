// A site: one job that trains a model together with jobs at other places. Inside a site workers
// exchange as ever; between sites an outer step every H steps goes over a NATS server, which all
// sites can reach. docs/how-to/sites.md shows it.
//
//   options.site = fast::sites::join({.name = "heidelberg",
//                                     .url = "tls://nats.example.org:4222/run7",
//                                     .every = 50});
//   fast::Worker worker(world, fast::stencil::torus2d(), parameters, options);
#pragma once

#include <fast/algorithm/rules.hpp>
#include <fast/codec/codec.hpp>
#include <fast/core/deadline.hpp>
#include <fast/topology/stencil.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fast {
class SiteExchange;
}

namespace fast::sites {

struct SiteOptions {
  /// This site's name has 1 to 40 letters, digits, '-' and '_'. No other site of the run has it.
  std::string name;
  /// nats://HOST:PORT/RUN or tls://HOST:PORT/RUN. RUN is the run's name: sites with other runs do
  /// not hear of each other.
  std::string url;
  /// Files, none if empty: the credentials that let this site in (of nsc), and the certificates
  /// that are trusted beside those of the system. docs/how-to/sites.md has the variables for other
  /// logins.
  std::string credentials_file{}, ca_file{};
  std::int64_t every = 50;  ///< H, steps between two exchanges
  /// What an exchange does: gasloc, noloco or diloco. With a delay, it takes what sites had
  /// published so many steps before, and training goes on meanwhile. The rule's own `period` has no
  /// meaning here, but all sites give the same.
  algorithm::Rule rule = algorithm::gasloc();
  /// What messages are coded with: identity, bf16, fp16 or int8. int4, int2 and Kind::sparse code
  /// differences, for staleness 0 and a topology in which a site's neighbors stay.
  codec::Options codec{};
  /// Kind::sparse sends the largest entries of a difference: this part of the parameters, at
  /// least one.
  double fraction = 0.01;
  /// Who reads whom, among the living sites in the order of their names. Another one for each
  /// exchange if it is a schedule. Exchanges with two sites or more ask it.
  TopologyRule topology = stencil::ring();
  /// 0: an exchange takes what the neighbors have published for this same exchange, and training
  /// waits for it. Above 0: training never waits; an exchange takes what has come by then, each
  /// publication once at most.
  std::int64_t staleness = 0;
  /// At staleness 0: a neighbor that is alive but has not published for so long is left out.
  Seconds patience{60};
  /// The first exchange waits until so many sites are there. A site that comes later does not wait.
  int expect = 1;
  /// What a step of this site counts, relative to the other sites', at most 1e12: its samples.
  double samples = 1;
  /// A site without a sign of life for so long is left out; or for half of that, if its signs of
  /// life have come regularly.
  Seconds silence{2};
};

/// What a site knows of another one.
struct OtherSite {
  std::string name;
  double seen_s = 0;  ///< seconds since its last sign of life
  /// Its clock of timelines less this site's, to half of the shortest time there and back.
  std::optional<double> clock_ahead_s{};
  double delay_s = 0;      ///< from asking for its latest publication to the first part; 0: none
  std::int64_t round = 0;  ///< that it has made, as it said last
  std::int64_t reads = 0;  ///< its publications that were combined
  std::int64_t exchange = -1;  ///< the latest of them, by the number of its exchange
  std::int64_t age = 0;        ///< of that one: the rounds of this site then less the other's
};

/// What a site has done so far.
struct SiteStats {
  std::int64_t exchanges = 0;    ///< that this site has made
  std::int64_t reads = 0;        ///< other sites' publications combined
  std::int64_t left_out = 0;     ///< neighbors that an exchange left out
  double waited_s = 0;           ///< training waited for other sites
  double bytes_sent = 0;         ///< of publications, as often as they were asked for
  double bytes_received = 0;     ///< of publications
  double mean_drift_weight = 0;  ///< Σ over exchanges of the weights of neighbors left out
  /// The median age of what was combined: the rounds of this site less those of the other one then.
  double median_age = 0;
  std::vector<OtherSite> others{};  ///< all that this site has met, by their names
};

/// A site that joins when its Worker begins. One Worker takes it; in a job of several ranks, each
/// rank joins with the same options, and the mean of their weights is what the site exchanges.
/// Throws Error(argument) on options out of range. The Worker's constructor throws Error(resource)
/// when no server can be reached, Error(argument) when a living site has this name, and
/// Error(mismatch) when the run's sites train another model or with other options.
std::shared_ptr<SiteExchange> join(const SiteOptions& options);
/// What a site of join() has done so far. The worker's thread asks.
SiteStats stats_of(const SiteExchange& site);

}  // namespace fast::sites
