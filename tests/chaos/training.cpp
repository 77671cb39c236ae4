#include "chaos/training.hpp"

#include <sys/mount.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "chaos/bounds.hpp"
#include "chaos/features.hpp"
#include "chaos/work.hpp"
#include "mpi/process_manager.hpp"
#include "support/temporary_directory.hpp"

namespace chaos {
namespace {

namespace fs = std::filesystem;

constexpr int batch_size = 20, rounds_an_epoch = 100, epochs = 4, step_ms = 5;
constexpr const char* disk_size = "size=24m";
constexpr fast::Seconds longest_look_for_saving{2};

/// A disk of a few MB, as long as it lives.
class SmallDisk {
 public:
  explicit SmallDisk(std::string place) : place_(std::move(place)) {
    fs::create_directories(place_);
    mounted_ = mount("tmpfs", place_.c_str(), "tmpfs", 0, disk_size) == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) umount2(place_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  void fill() const {
    std::ofstream file(filler(), std::ios::binary);
    const std::string block(std::size_t{1} << 16, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void free() const { fs::remove(filler()); }

 private:
  std::string filler() const { return place_ + "/filler"; }

  std::string place_;
  bool mounted_ = false;
};

/// visit(path) of all in the folder, of which files may go at any moment.
template <class Iterator, class Visit>
void for_each(const std::string& folder, const Visit& visit) {
  std::error_code gone;
  for (Iterator entry(folder, gone); !gone && entry != Iterator(); entry.increment(gone))
    visit(entry->path());
}

/// The folder of the newest checkpoint that has a manifest; empty: none.
std::string newest_checkpoint(const std::string& saved) {
  std::string newest;
  for_each<fs::directory_iterator>(saved, [&](const fs::path& place) {
    std::error_code gone;
    if (fs::exists(place / "manifest.json", gone) && place.string() > newest)
      newest = place.string();
  });
  return newest;
}

bool is_saving(const std::string& saved) {
  bool saving = false;
  for_each<fs::recursive_directory_iterator>(saved, [&](const fs::path& place) {
    saving = saving || place.filename().string().find(".tmp-") != std::string::npos;
  });
  return saving;
}

/// Begins to count when the first checkpoint is there.
class TrainingFaults : public Faults {
 public:
  TrainingFaults(const Plan& plan, const SmallDisk& disk, std::string directory)
      : disk_(disk), directory_(std::move(directory)), saved_(directory_ + "/saved") {
    for (const Event& event : plan.events) faults_.push_back({&event, {}, {}, false});
  }

  void look() override {
    if (!began_) {
      if (newest_checkpoint(saved_).empty()) return;
      began_ = true;
      for (Fault& fault : faults_) {
        const double after_s = 1e-3 * step_ms * fault.event->round + 1e-6 * fault.event->delay_us;
        fault.begins.emplace(fast::Seconds(after_s));
      }
    }
    for (Fault& fault : faults_) {
      if (!fault.until && fault.begins->expired() && is_the_moment(fault)) {
        begin(*fault.event);
        fault.until.emplace(fast::Seconds(fault.event->length_s));
      }
      if (fault.until && !fault.over && fault.until->expired()) {
        end(*fault.event);
        fault.over = true;
      }
    }
  }

 private:
  struct Fault {
    const Event* event;
    std::optional<fast::Deadline> begins, until;
    bool over = false;
  };

  /// Of SIGTERM: while a file is being written, if any is in the next two seconds.
  bool is_the_moment(Fault& fault) {
    if (fault.event->kind != Kind::save) return true;
    if (!looked_for_) looked_for_.emplace(longest_look_for_saving);
    return is_saving(saved_) || looked_for_->expired();
  }
  void begin(const Event& event) {
    if (event.kind == Kind::kill) signal(event, SIGKILL);
    if (event.kind == Kind::stop) signal(event, SIGSTOP);
    if (event.kind == Kind::save) signal(event, SIGTERM);
    if (event.kind == Kind::disk) disk_.fill();
    for (const int victim : event.victims) {
      if (event.kind == Kind::clock) set_clock(directory_, victim, event.amount);
    }
  }
  void end(const Event& event) {
    if (event.kind == Kind::stop) signal(event, SIGCONT);
    if (event.kind == Kind::disk) disk_.free();
    for (const int victim : event.victims) {
      if (event.kind == Kind::clock) set_clock(directory_, victim, 0);
    }
  }
  void signal(const Event& event, int number) const {
    for (const int victim : event.victims) {
      pid_t process = 0;
      std::ifstream(fmt::format("{}/process-{}", directory_, victim)) >> process;
      if (process > 0) kill(process, number);
    }
  }

  const SmallDisk& disk_;
  std::string directory_, saved_;
  std::vector<Fault> faults_;
  bool began_ = false;
  std::optional<fast::Deadline> looked_for_;
};

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<std::string> options_of_training(const Plan& plan, const std::string& directory) {
  const int samples = batch_size * rounds_an_epoch * plan.workers;
  const bool accumulates = std::ranges::find(plan.with, "accumulate") != plan.with.end();
  std::vector<std::string> words{
      "--samples", std::to_string(samples), "--batch-size", std::to_string(batch_size), "--epochs",
      std::to_string(epochs), "--model", "mlp:16", "--lr", "0.005", "--quiet", "--step-ms",
      std::to_string(step_ms), "--algorithm", plan.rule, "--topology", plan.topology, "--staleness",
      plan.staleness < 0 ? "inf" : std::to_string(plan.staleness), "--codec", plan.codec, "--arena",
      plan.rotating ? "rotating" : "fixed", "--suspect-after",
      plan.learns_suspicion ? "auto" : std::to_string(suspect_after_s), "--deadline", "30",
      // By the clock, which no worker's wall clock may change, or by rounds. A run of 0.8 s, as
      // with "accumulate", may end before the workers agree on a checkpoint by the clock.
      "--checkpoint-every", plan.seed % 2 == 0 && !accumulates ? "0.3s" : "40", "--keep", "3",
      "--checkpoints", directory + "/saved"};
  for (const auto& [key, value] : parameters_of(plan)) {
    words.insert(words.end(), {"--algorithm-option", key + "=" + value});
  }
  words = joined(words, options_of_features(plan));
  const bool exchanges = !bound_of(plan.rule).everybody && plan.rule != "none";
  if (exchanges || plan.rule == "gossip_pga") return words;
  for (const char* option : {"--topology", "--codec", "--staleness"}) {
    const auto at = std::find(words.begin(), words.end(), option);
    words.erase(at, at + 2);
  }
  return words;
}

/// At staleness above 0, workers that have finished by then do not save.
bool may_miss_files(const Plan& plan) {
  return plan.staleness != 0 || !plan.killed().empty() ||
         plan.longest_s(Kind::stop) > suspect_after_s / 2 || plan.has(Kind::disk);
}

/// What is wrong with the checkpoints that the run has left.
std::string of_checkpoints(const Programs& programs, const Plan& plan, const std::string& directory,
                           std::string& log) {
  const std::string saved = directory + "/saved";
  if (newest_checkpoint(saved).empty()) return "no checkpoint is left";
  std::vector<std::string> words{programs.fastrun, "-n", std::to_string(plan.workers),
                                 programs.train};
  words = joined(words, options_of_training(plan, directory));
  words = joined(words, {"--resume", saved, "--out", directory + "/resumed"});
  words.erase(std::find(words.begin(), words.end(), "--checkpoints"),
              std::find(words.begin(), words.end(), "--checkpoints") + 2);
  if (!may_miss_files(plan)) words.emplace_back("--strict");
  const auto status = run(words, {}, directory + "/log-of-resumed", nullptr);
  const std::string text = contents(directory + "/log-of-resumed");
  log += "resumed:\n" + text;
  if (!status) return "the resumed run hung";
  if (*status != 0) return fmt::format("the resumed run ended with status {}", *status);
  return text.find("test accuracy") == std::string::npos ? "the resumed run has no result" : "";
}

Verdict judge_training(const Plan& plan, const Ending& ending) {
  if (!ending.status) return Verdict::of("it hung", Fault::hang);
  if (bound_of(plan.rule).everybody && !plan.killed().empty()) return Verdict::of(of_error(ending));
  if (*ending.status != 0)
    return Verdict::of(fmt::format("fastrun ended with status {}", *ending.status));
  return Verdict::of(of_output(ending.log));
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

}  // namespace

std::string of_output(const std::string& log) {
  const std::size_t errors = count_of(log, "error: ");
  if (errors > 0) return fmt::format("{} messages of an error in a run that ended well", errors);
  const std::size_t tables =
      count_of(log, "test accuracy, mean model") + count_of(log, "stopped after");
  return tables == 1 ? "" : fmt::format("{} tables of results instead of one", tables);
}

std::string why_no_small_disk() {
  const fast::testing::TemporaryDirectory directory;
  const SmallDisk disk((directory / "disk").string());
  return disk.mounted() ? "" : std::string("no tmpfs can be mounted: ") + std::strerror(errno);
}

Verdict run_training(const Programs& programs, const Plan& plan, const std::string& directory,
                     std::string& log) {
  const SmallDisk disk(directory + "/saved");
  TrainingFaults faults(plan, disk, directory);
  const auto survivors = std::max(1, plan.workers - static_cast<int>(plan.killed().size()));
  std::vector<std::string> words{programs.fastrun,
                                 "--start-deadline",
                                 "3",
                                 "--min-workers",
                                 std::to_string(survivors),
                                 "-n",
                                 std::to_string(plan.workers),
                                 programs.self,
                                 "--rank",
                                 write(plan),
                                 directory,
                                 programs.train};
  words = joined(words, options_of_training(plan, directory));
  words = joined(words, {"--out", directory + "/out"});
  Ending ending;
  ending.status = run(words, {}, directory + "/log", &faults);
  log = ending.log = contents(directory + "/log");
  Verdict verdict = judge_training(plan, ending);
  if (!verdict.wrong.empty()) return verdict;
  return Verdict::of(of_checkpoints(programs, plan, directory, log), Fault::checkpoint);
}

int become_training(char** argv, const Plan& plan, const std::string& directory) {
  fake_clock(argv, plan, directory);
  const auto self = fast::mpi::started();
  std::ofstream(fmt::format("{}/process-{}", directory, self ? self->rank : 0)) << getpid();
  execv(argv[4], argv + 4);
  return 127;
}

}  // namespace chaos
