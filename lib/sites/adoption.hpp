// How a site joins: its name is free, others are there, and the one that is furthest gives it its
// weights. A site that has fallen behind asks for them in the same way.
#pragma once

#include <fast/sites/site.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  /// Error(mismatch) if the run's sites have another model or other options.
  void await_name();
  /// Waits until as many sites are there as are expected, or one that trains. Throws
  /// Error(deadline).
  void await_others();
  /// Waits for the state that this site begins with. Null: it begins with its own weights. Throws
  /// Error(deadline) if sites that train do not answer.
  std::shared_ptr<const Received> await_state();

  /// The site that is furthest: of those that train, or else, of all, the first by name. Those that
  /// do not answer are left aside.
  std::optional<Status> furthest() const;
  /// Does not wait: the state of that site, once it has come, and null until then. Asks no other
  /// site any more. An empty name asks none.
  std::shared_ptr<const Received> ask(const std::string& site);

 private:
  void require_same(const std::vector<Status>& others) const;
  std::shared_ptr<const Received> state_of(const Status& from);
  std::shared_ptr<const Received> usable(std::shared_ptr<const Received> state) const;

  const SiteOptions& options_;
  const std::string& about_;
  Node& node_;
  SiteHistory& history_;
  const OuterStep& outer_;
  const LogSink& log_;
  std::string asked_;  ///< by ask()
};

}  // namespace fast::sites
