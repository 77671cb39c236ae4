#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/simgrid/run.hpp>
#include <utility>
#include "simgrid/build_platform.hpp"
#include "simgrid/carriers.hpp"
#include "simgrid/collective_run.hpp"
#include "simgrid/neighbor_run.hpp"

namespace fast::simgrid {
namespace {

namespace s4u = ::simgrid::s4u;

// Messages within a host do not meet the network.
class SimulatedStage final : public Stage {
 public:
  SimulatedStage(std::vector<s4u::Host*> hosts, const RunOptions& options)
      : hosts_(std::move(hosts)), options_(options) {}

  double now() const override { return s4u::Engine::get_clock(); }

  void after(double seconds, Event event) override {
    ::simgrid::kernel::timer::Timer::set(now() + seconds, std::move(event));
  }

  void send(int from, int to, double size_bytes, Event arrived) override {
    const std::size_t source = host(from), reader = host(to);
    if (source == reader) return after(size_bytes / options_.memory_bandwidth, std::move(arrived));
    sent_bytes_[{source, reader}] += size_bytes;
    // Events run outside of actors, whose stacks are small: there may be 10^5 of them.
    carriers_.send(hosts_[source], hosts_[reader], size_bytes,
                   [this, event = std::move(arrived)] { after(0, event); });
  }

  void finish() override {
    is_finished_ = true;
    finished_->release();
  }
  bool is_finished() const { return is_finished_; }
  void wait_until_finished() { finished_->acquire(); }

  std::vector<LinkUse> links() const {
    std::map<std::string, double> uses;
    for (const auto& [ends, size_bytes] : sent_bytes_) {
      std::vector<s4u::Link*> route;
      hosts_[ends.first]->route_to(hosts_[ends.second], route, nullptr);
      for (const s4u::Link* link : route) uses[link->get_name()] += size_bytes;
    }
    std::vector<LinkUse> sorted;
    for (const auto& [link, size_bytes] : uses) sorted.push_back({link, size_bytes});
    std::stable_sort(sorted.begin(), sorted.end(), [](const LinkUse& a, const LinkUse& b) {
      return a.size_bytes > b.size_bytes;
    });
    return sorted;
  }

 private:
  std::size_t host(int worker) const {
    return static_cast<std::size_t>(worker / options_.workers_per_host);
  }

  std::vector<s4u::Host*> hosts_;
  RunOptions options_;
  Carriers carriers_;
  s4u::SemaphorePtr finished_ = s4u::Semaphore::create(0);
  bool is_finished_ = false;
  std::map<std::pair<std::size_t, std::size_t>, double> sent_bytes_;
};

// SimGrid's own options: bytes take bytes/bandwidth, and directions do not slow each other.
s4u::Engine& engine() {
  static std::vector<std::string> words = {"fast",
                                           "--log=root.thres:critical",
                                           "--cfg=network/model:CM02",
                                           "--cfg=network/TCP-gamma:0",
                                           "--cfg=network/crosstraffic:no",
                                           "--cfg=contexts/stack-size:16",
                                           "--cfg=contexts/guard-size:0",
                                           "--cfg=debug/verbose-exit:no"};
  static std::vector<char*> arguments = [] {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }();
  static int count = static_cast<int>(words.size());
  static s4u::Engine made(&count, arguments.data());
  return made;
}

template <class Workers>
simulation::RoundFigures figures_of(const simulation::Workload& load, SimulatedStage& stage,
                                    s4u::Host* home) {
  Workers workers(load, stage);
  // Something must be running besides actors that wait, or SimGrid ends them.
  s4u::Actor::create("run", home, [&] {
    workers.start();
    stage.wait_until_finished();
  });
  engine().run();
  require(stage.is_finished(), ErrorKind::internal,
          "simulation: at {:.6g} s, workers wait for each other without end", stage.now());
  return workers.tally().figures();
}

void check_options(const simulation::Workload& load, const RunOptions& options) {
  require(options.workers_per_host >= 1, ErrorKind::argument,
          "simulation: {} workers a host; at least 1 is needed", options.workers_per_host);
  require(options.memory_bandwidth > 0, ErrorKind::argument,
          "simulation: a memory bandwidth of {}; it is above 0", options.memory_bandwidth);
  simulation::check(load);
}

}  // namespace

SimulatedRun run(const simulation::Workload& workload, const Platform& platform,
                 const RunOptions& options) {
  check_options(workload, options);
  check_platform(platform);
  const int workers = workload.schedule.workers();
  const int hosts = (workers + options.workers_per_host - 1) / options.workers_per_host;
  std::vector<s4u::Host*> built = build_platform(engine(), platform, hosts);
  s4u::Host* home = built.front();
  SimulatedStage stage(std::move(built), options);
  SimulatedRun result;
  result.figures = workload.pattern == simulation::Pattern::neighbors
                       ? figures_of<NeighborRun>(workload, stage, home)
                       : figures_of<CollectiveRun>(workload, stage, home);
  result.links = stage.links();
  return result;
}

}  // namespace fast::simgrid
