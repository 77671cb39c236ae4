// Runs that something happens to; scripts/chaos.sh is for people. Each must end by itself, with the
// survivors where they should be and no torn value seen.
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fast/core/deadline.hpp>
#include <fast/core/random.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "chaos/bounds.hpp"
#include "chaos/draw.hpp"
#include "chaos/refusals.hpp"
#include "chaos/run.hpp"
#include "chaos/shrink.hpp"
#include "chaos/tally.hpp"
#include "chaos/training.hpp"
#include "chaos/work.hpp"
#include "support/temporary_directory.hpp"

using namespace chaos;

namespace {

constexpr int skipped = 77;  ///< what ctest takes for a test that cannot be done here
constexpr int tries_of_shrinking = 40, times_again = 2;

/// Two things that nothing can be done about here. UCX 1.13 ends a process that finds the
/// connection broken while it answers a read: now and then, where neighbors pull, a survivor's. And
/// it does not start when a network device goes that it has just seen: those of test hosts come and
/// go.
bool ended_by_ucx(const Plan& plan, const std::string& log) {
  const auto tells = [&](const char* text) { return log.find(text) != std::string::npos; };
  const bool pulls = plan.hosts > 1 && plan.path != "two_sided";
  return (pulls && !plan.killed().empty() && tells("ucp_request.inl")) ||
         (tells("internal_Init_thread") && tells("No such device"));
}

/// Makes runs and judges them. Of several hosts one at a time.
class Driver {
 public:
  Driver(Programs programs, std::unique_ptr<Hosts> hosts)
      : programs_(std::move(programs)), hosts_(std::move(hosts)) {}

  Verdict judged(const Plan& plan, std::string& log, int repeats = 2) {
    std::unique_lock lock(one_on_hosts_, std::defer_lock);
    if (plan.hosts > 1) lock.lock();
    const fast::testing::TemporaryDirectory directory;
    const std::string place = directory.path().string();
    const Verdict verdict = run_and_judge(plan, place, log);
    if (verdict.wrong.empty() || repeats == 0 || !ended_by_ucx(plan, log)) return verdict;
    if (lock.owns_lock()) lock.unlock();
    return judged(plan, log, repeats - 1);
  }

  Ending ended(const Plan& plan) const {
    const fast::testing::TemporaryDirectory directory;
    return run_workers(programs_, hosts_.get(), plan, directory.path().string());
  }

 private:
  Verdict run_and_judge(const Plan& plan, const std::string& place, std::string& log) {
    if (plan.is_training()) return run_training(programs_, plan, place, log);
    const double reference = plan.lenet ? undisturbed(plan) : 0;
    const Ending ending = run_workers(programs_, hosts_.get(), plan, place);
    if (plan.has(Kind::host)) hosts_->restore();
    log = ending.log;
    return judge(plan, ending, reference);
  }

  /// What the same run comes to when nothing happens to it, in the mean over some seeds.
  double undisturbed(Plan plan) {
    constexpr std::uint64_t seeds = 3;
    const std::lock_guard lock(one_reference_);
    plan.events.clear();
    plan.seed = 0;
    const std::string key = write(plan);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    double sum = 0;
    while (plan.seed < seeds) {
      ++plan.seed;
      const Ending ending = ended(plan);
      sum += ending.results.empty() ? 1 : ending.results[0].mean;
    }
    return known_[key] = sum / seeds;
  }

  Programs programs_;
  std::unique_ptr<Hosts> hosts_;
  std::mutex one_on_hosts_, one_reference_;
  std::map<std::string, double> known_;
};

void show(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) std::printf("    | %s\n", line.c_str());
}

/// Runs schedules, several at a time: most of their time is spent waiting.
class Session {
 public:
  struct Options {
    int jobs = 1;
    bool shrinks = true;
    bool shows_all = false;  ///< the output of runs that are good, too
  };
  Session(Driver& driver, Options options) : driver_(driver), options_(options) {}

  void run(const std::vector<Plan>& plans) {
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> threads;
    for (int job = 0; job < options_.jobs; ++job) {
      threads.emplace_back([&] {
        for (std::size_t index = next++; index < plans.size(); index = next++)
          try_one(plans[index], index);
      });
    }
  }
  const Tally& tally() const { return tally_; }

 private:
  void try_one(const Plan& plan, std::size_t index) {
    const auto began = fast::Clock::now();
    std::string log;
    const Verdict verdict = driver_.judged(plan, log);
    tally_.add(plan, verdict);
    const double seconds = fast::Seconds(fast::Clock::now() - began).count();
    const bool good = verdict.wrong.empty();
    const std::string outcome = good ? "ok" : "FAILED: " + verdict.wrong;
    {
      const std::lock_guard lock(one_prints_);
      std::printf("%3zu  %s  %.1f s, held %.2f s%s  %s\n", index, write(plan).c_str(), seconds,
                  verdict.held_s,
                  verdict.distance ? fmt::format(", {:.4f} away", *verdict.distance).c_str() : "",
                  outcome.c_str());
      if (!good || options_.shows_all) show(log);
      std::fflush(stdout);
    }
    if (!good && options_.shrinks) simplify(plan);
  }

  bool fails(const Plan& plan) {
    std::string log;
    return !driver_.judged(plan, log).wrong.empty();
  }

  void simplify(const Plan& plan) {
    int again = 0;
    while (again < times_again && !fails(plan)) ++again;
    if (again == times_again) {
      report("It did not fail again in two runs", plan);
      return;
    }
    report("The simplest schedule that fails",
           shrink(
               plan, [&](const Plan& simpler) { return fails(simpler); }, tries_of_shrinking));
  }

  void report(const char* what, const Plan& plan) {
    const std::lock_guard lock(one_prints_);
    std::printf("     %s: --replay '%s'\n", what, write(plan).c_str());
    std::fflush(stdout);
  }

  Driver& driver_;
  Options options_;
  Tally tally_;
  std::mutex one_prints_;
};

struct Request {
  Programs programs;
  std::string hosts, link_switch, replay, schedules;
  int host_count = 3, jobs = 1;
  std::uint64_t count = 30, seed = 1, from = 0;
  bool refused = false, dry = false, all_on_hosts = false, no_shrinking = false, shows = false;
  std::vector<std::string> rules, events{"all"};
  Wish wish;
};

/// What cannot be done here is left out, with the reason.
void leave_out(std::vector<Kind>& kinds, Kind kind, const std::string& why) {
  if (why.empty() || std::erase(kinds, kind) == 0) return;
  std::printf("without \"%s\": %s\n", name(kind).c_str(), why.c_str());
}

std::string why_no_clock() {
  return clock_library().empty() ? "no libfaketime here; apt-get install faketime" : "";
}

void complete(Request& request) {
  Wish& wish = request.wish;
  const bool hosts = !request.hosts.empty();
  wish.hosts = hosts ? request.host_count : 1;
  wish.always = hosts && request.all_on_hosts;
  wish.kinds = default_kinds(hosts);
  wish.kinds.insert(wish.kinds.end(), {Kind::kill, Kind::stop});  // the commonest twice
  if (request.events != std::vector<std::string>{"all"}) {
    wish.kinds.clear();
    for (const std::string& event : request.events) wish.kinds.push_back(kind_named(event));
  }
  if (wish.always || wish.lenet || wish.devices)
    std::erase_if(wish.kinds, [](Kind kind) { return is_of_training(kind); });
  if (wish.always) std::erase(wish.kinds, Kind::end);  // survivors that have left cannot be read
  if (wish.lenet) std::erase(wish.kinds, Kind::memory);
  leave_out(wish.kinds, Kind::clock, why_no_clock());
  leave_out(wish.kinds, Kind::disk, why_no_small_disk());
  if (!request.rules.empty()) wish.rules = request.rules;
  if (request.rules == std::vector<std::string>{"all"}) {
    wish.rules.clear();
    for (const Bound& bound : bounds()) wish.rules.emplace_back(bound.rule);
  }
  if (wish.kinds.empty()) throw std::invalid_argument("no event is left; choose others");
}

std::vector<Plan> plans_of_file(const std::string& path) {
  std::vector<Plan> plans;
  std::ifstream in(path);
  if (!in) throw std::invalid_argument(path + " cannot be read");
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') plans.push_back(read(line));
  }
  return plans;
}

/// Without those that cannot be run here.
std::vector<Plan> possible(std::vector<Plan> plans, bool hosts) {
  std::erase_if(plans, [&](const Plan& plan) {
    std::string why;
    if (plan.hosts > 1 && !hosts) why = "no hosts; give --hosts";
    if (plan.has(Kind::clock)) why += why_no_clock();
    if (plan.has(Kind::disk)) why += why_no_small_disk();
    if (!why.empty()) std::printf("left out: %s: %s\n", write(plan).c_str(), why.c_str());
    return !why.empty();
  });
  return plans;
}

std::vector<Plan> plans_of(const Request& request) {
  const bool hosts = !request.hosts.empty();
  if (!request.replay.empty()) return possible({read(request.replay)}, hosts);
  std::vector<Plan> plans;
  if (!request.schedules.empty()) plans = possible(plans_of_file(request.schedules), hosts);
  for (std::uint64_t index = request.from; index < request.from + request.count; ++index)
    plans.push_back(draw(request.wish, request.seed, index));
  return plans;
}

int check_refusals(Driver& driver) {
  int failures = 0;
  for (const Refusal& refusal : refusals()) {
    const Ending ending = driver.ended(refusal.plan);
    const std::string wrong = of_error(ending, refusal.text);
    std::printf("refused: %s  %s\n", write(refusal.plan).c_str(),
                wrong.empty() ? "ok" : ("FAILED: " + wrong).c_str());
    if (!wrong.empty()) show(ending.log);
    failures += wrong.empty() ? 0 : 1;
  }
  std::printf("%zu refusals, %d failures\n", refusals().size(), failures);
  return failures == 0 ? 0 : 1;
}

void describe(CLI::App& app, Request& request) {
  app.option_defaults()->always_capture_default();
  app.add_option("fastrun", request.programs.fastrun, "the launcher")->required();
  app.add_option("--train", request.programs.train, "fast-train [beside fastrun]");
  app.add_option("--count", request.count, "schedules to try");
  app.add_option("--seed", request.seed, "of the schedules");
  app.add_option("--from", request.from, "the first schedule, to have one again");
  app.add_option("--jobs", request.jobs, "schedules at a time; of several hosts one")
      ->check(CLI::PositiveNumber);
  app.add_option("--rules", request.rules, "all, or names [awc,atc]")->delimiter(',');
  app.add_option("--events", request.events, "all, or names")->delimiter(',');
  app.add_option("--hosts", request.hosts, "tests/hosts/hosts.sh: some schedules on several hosts");
  app.add_option("--switch", request.link_switch, "tests/hosts/switch.cpp [beside fastrun]");
  app.add_option("--host-count", request.host_count, "of --hosts, at most")
      ->check(CLI::Range(2, 4));
  app.add_flag("--all-on-hosts", request.all_on_hosts, "all schedules on --host-count hosts");
  app.add_flag("--lenet", request.wish.lenet, "LeNet on Fashion-MNIST instead of a parabola");
  app.add_flag("--devices", request.wish.devices,
               "weights on devices, as the host plays them: read in place and by MPI");
  app.add_option("--replay", request.replay, "the line of a schedule: runs it");
  app.add_option("--schedules", request.schedules, "a file with such lines, besides those drawn");
  app.add_flag("--refusals", request.refused, "only combinations that must be refused");
  app.add_flag("--no-shrinking", request.no_shrinking, "do not simplify schedules that fail");
  app.add_flag("--show", request.shows, "print the output of all runs");
  app.add_flag("--dry", request.dry, "print the schedules only");
}

int run(Request& request) {
  const auto beside = std::filesystem::path(request.programs.fastrun).parent_path();
  if (request.programs.train.empty()) request.programs.train = (beside / "fast-train").string();
  if (request.link_switch.empty()) request.link_switch = (beside / "switch").string();
  request.programs.self = std::filesystem::read_symlink("/proc/self/exe").string();
  complete(request);
  const std::vector<Plan> plans = plans_of(request);
  if (request.dry) {
    for (const Plan& plan : plans) std::printf("%s\n", write(plan).c_str());
    return 0;
  }
  std::unique_ptr<Hosts> hosts;
  const bool needs_hosts =
      std::any_of(plans.begin(), plans.end(), [](const Plan& plan) { return plan.hosts > 1; });
  if (!request.hosts.empty() && call(request.hosts + " check switch") != 0) return skipped;
  if (needs_hosts && !request.refused) {
    hosts = std::make_unique<Hosts>(request.hosts, request.link_switch, request.host_count);
  }
  Driver driver(request.programs, std::move(hosts));
  if (request.refused) return check_refusals(driver);
  Session session(driver, {request.jobs, !request.no_shrinking, request.shows});
  session.run(plans);
  std::printf("%s%s; seed %llu\n", session.tally().table().c_str(),
              session.tally().summary().c_str(), static_cast<unsigned long long>(request.seed));
  return session.tally().failures() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string first = argc > 3 ? argv[1] : "";
  if (first == "--work") return work(argc, argv, read(argv[2]), argv[3]);
  if (first == "--rank") return become_training(argv, read(argv[2]), argv[3]);
  Request request;
  CLI::App app("Runs that something happens to", "chaos");
  describe(app, request);
  CLI11_PARSE(app, argc, argv);
  return run(request);
} catch (const std::exception& error) {
  std::fprintf(stderr, "chaos: %s\n", error.what());
  return 2;
}
