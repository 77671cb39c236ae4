#include <fast/core/error.hpp>
#include <fast/topology/schedule.hpp>
#include <utility>

namespace fast {

Schedule::Schedule(Topology topology)
    : name_(topology.name()), workers_(topology.workers()), period_(1) {
  at_round_ = [topology = std::move(topology)](std::int64_t) { return topology; };
}

Schedule::Schedule(std::string name, std::vector<Topology> rounds)
    : name_(std::move(name)), workers_(0), period_(static_cast<std::int64_t>(rounds.size())) {
  require(!rounds.empty(), ErrorKind::topology, "Schedule {}: no rounds; at least 1 is required",
          name_);
  workers_ = rounds.front().workers();
  for (const Topology& topology : rounds) {
    require(topology.workers() == workers_, ErrorKind::topology,
            "Schedule {}: {} has {} workers, {} has {}; all rounds need the same number", name_,
            rounds.front().name(), workers_, topology.name(), topology.workers());
  }
  at_round_ = [rounds = std::move(rounds)](std::int64_t round) {
    return rounds[static_cast<std::size_t>(round) % rounds.size()];
  };
}

Schedule::Schedule(std::string name, int workers, std::int64_t period, AtRound at_round)
    : name_(std::move(name)), workers_(workers), period_(period), at_round_(std::move(at_round)) {}

Topology Schedule::at(std::int64_t round) const {
  require(round >= 0, ErrorKind::argument, "Schedule {}: asked for round {}, rounds begin at 0",
          name_, round);
  return at_round_(round);
}

Schedule Schedule::with_weights(WeightRule preferred, bool lazy) const {
  if (is_static()) return at(0).with_weights(preferred, lazy);
  return {name_, workers_, period_, [inner = at_round_, preferred, lazy](std::int64_t round) {
            return inner(round).with_weights(preferred, lazy);
          }};
}

TopologyRule::TopologyRule(std::string name, Make make, int workers)
    : name_(std::move(name)), make_(std::move(make)), workers_(workers) {}

TopologyRule::TopologyRule(Topology topology) : TopologyRule(Schedule(std::move(topology))) {}

TopologyRule::TopologyRule(Schedule schedule)
    : name_(schedule.name()), workers_(schedule.workers()) {
  make_ = [schedule = std::move(schedule)](int) { return schedule; };
}

Schedule TopologyRule::make(int workers) const {
  require(workers >= 1, ErrorKind::topology,
          "TopologyRule {}: asked for {} workers, at least 1 is required", name_, workers);
  Schedule schedule = make_(workers);
  require(schedule.workers() == workers, ErrorKind::topology,
          "TopologyRule {}: made for {} workers, this run has {}; start {} workers or choose "
          "another topology",
          name_, schedule.workers(), workers, schedule.workers());
  return schedule;
}

}  // namespace fast
