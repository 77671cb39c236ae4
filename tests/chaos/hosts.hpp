// The hosts of runs on several, and what happens to their links.
#pragma once

#include <fast/core/deadline.hpp>

#include <optional>
#include <string>
#include <vector>

#include "chaos/plan.hpp"

namespace chaos {

/// What a run's driver makes happen from outside.
class Faults {
 public:
  virtual ~Faults() = default;
  /// Called many times a second while the run goes on.
  virtual void look() = 0;
};

/// Hosts (network namespaces) as long as it lives, one program at a time.
class Hosts {
 public:
  /// `program`: tests/hosts/switch.cpp.
  Hosts(std::string script, const std::string& program, int count);
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts();

  int count() const { return count_; }
  const std::string& script() const { return script_; }
  /// Makes them anew, after a host has died.
  void restore();
  /// Of hosts.sh.
  int turn(const std::string& words) const;

 private:
  std::string script_, program_;
  int count_;
  int lock_;
};

/// Changes links when a rank asks for it, and restores them after the event's length.
class LinkFaults : public Faults {
 public:
  LinkFaults(const Hosts& hosts, const Plan& plan, std::string directory);
  LinkFaults(const LinkFaults&) = delete;
  LinkFaults& operator=(const LinkFaults&) = delete;
  ~LinkFaults() override;
  void look() override;

 private:
  struct Fault {
    const Event* event;
    std::string request;  ///< a file
    std::optional<fast::Deadline> until;
    bool over = false;
  };
  void begin(Fault& fault) const;
  void end(Fault& fault) const;

  const Hosts& hosts_;
  std::vector<Fault> faults_;
};

int call(const std::string& command);

}  // namespace chaos
