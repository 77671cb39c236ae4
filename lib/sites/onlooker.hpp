// Looks at the sites of a run from outside: who is there, how far they are, and what they train.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/observer.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sites/bus.hpp"
#include "sites/node.hpp"

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
std::string new_onlooker_name();

/// It sends requests for models, and nothing else: sites do not hear of it. One thread uses it.
class Onlooker {
 public:
  /// `name` is the one that the bus has. States of more bytes than `most_bytes` are not read.
  Onlooker(std::unique_ptr<Bus> bus, const std::string& name, const LogSink& log = {},
           const Patience& patience = {}, std::uint64_t most_bytes = memory_of_machine());

  /// Listens, and returns all sites that are there, by their names.
  std::vector<Sight> look();

  /// Waits until so many sites take part, at most until the deadline. With a round, sites count
  /// that have made so many, also if they have left since, and none that trains has made fewer.
  /// False if the deadline has passed.
  bool await(int sites, std::int64_t round, const Deadline& deadline);
  /// How many sites the last await() has counted.
  std::size_t counted() const { return counted_.size(); }

  /// Reads the model of this site, or if the name is empty of the one that has made most rounds. If
  /// that one goes or does not answer, another one is read. Throws Error(resource) when no site is
  /// left to read from, and Error(deadline).
  SiteModel fetch(const std::string& site, const Deadline& deadline);

  const std::string& run() const { return run_; }

 private:
  static std::uint64_t memory_of_machine();
  void listen(const std::string& site, const Deadline& deadline);
  bool count(std::int64_t round);
  std::optional<Status> furthest(const std::string& site) const;
  std::shared_ptr<const Received> read(const Status& from, const Deadline& deadline);
  void leave_aside(const std::string& site);
  std::optional<SiteModel> model_of(const Status& from, const Deadline& deadline);
  std::optional<std::uint64_t> too_many_bytes(const Status& from) const;
  bool is_hopeless(const std::string& site) const;
  [[noreturn]] void fail_without(const std::string& site) const;
  std::string why_not(const std::string& site) const;

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
