// How long it takes until workers notice a death, and how often they suspect a worker that lives.
// Started with fastrun on at least three ranks, by bench/detection.sh. Ranks 1, 2, ... die one
// after the other. Each rank writes what it notices to a file. The clock is the machine's: all
// ranks must run on one machine, in one or several network namespaces.
#include <fmt/core.h>
#include <fmt/os.h>

#include <csignal>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/worker.hpp>
#include <filesystem>
#include <set>

#include "membership/liveness.hpp"
#include "ranks.hpp"

using namespace fast;

namespace {

struct Options {
  std::string suspect_after = "auto", topology = "complete";
  std::filesystem::path out = ".";
  int deaths = 1;
  double warm_up_s = 10, every_s = 6, watch_s = 0, step_ms = 10, jitter_ms = -1;
  std::size_t elements = 1000;
  std::uint64_t seed = 1;

  std::optional<Seconds> threshold() const {
    if (suspect_after == "auto") return std::nullopt;
    return Seconds(std::stod(suspect_after));
  }
  double length_s() const { return warm_up_s + deaths * every_s + watch_s; }
};

void describe(CLI::App& app, Options& o) {
  app.add_option("--suspect-after", o.suspect_after, "auto or seconds")->capture_default_str();
  app.add_option("--topology", o.topology, "a name or a file")->capture_default_str();
  app.add_option("--out", o.out, "directory of the files rank-N")->capture_default_str();
  app.add_option("--deaths", o.deaths, "how many ranks die")->capture_default_str();
  app.add_option("--warm-up", o.warm_up_s, "seconds before the first death")->capture_default_str();
  app.add_option("--every", o.every_s, "seconds between two deaths")->capture_default_str();
  app.add_option("--watch", o.watch_s, "further seconds without a death")->capture_default_str();
  app.add_option("--step-ms", o.step_ms, "length of a step, in which ranks sleep")
      ->capture_default_str();
  app.add_option("--elements", o.elements, "length of the vector of floats")->capture_default_str();
  app.add_option("--played-jitter", o.jitter_ms,
                 "no ranks train: plays an observer alone, to whom signs of life come so many ms "
                 "late at most, for --deaths minutes, each with a death at its end");
  app.add_option("--seed", o.seed, "of the played jitter")->capture_default_str();
}

/// The file of what a rank notices: "died RANK AT", "suspects RANK AT", "end AT".
class Notes {
 public:
  Notes(const std::filesystem::path& directory, int rank)
      : file_(fmt::output_file((directory / fmt::format("rank-{}", rank)).string())) {}
  void write(const std::string& what, double at_s) {
    file_.print("{} {:.3f}\n", what, at_s);
    file_.flush();
  }

 private:
  fmt::ostream file_;
};

double now_s() { return Seconds(Clock::now().time_since_epoch()).count(); }

class Rank {
 public:
  Rank(const Group& group, const Options& o)
      : o_(o), rank_(group.rank()), notes_(o.out, rank_), x_(o.elements) {
    WorkerOptions options;
    options.suspect_after = o.threshold();
    options.on_suspect = [this](int worker) { absent_.insert(worker); };
    worker_.emplace(group, topology_from(o.topology),
                    std::vector<TensorView>{view_of("x", std::span(x_))}, options);
    began_s_ = now_s();
  }

  void run() {
    while (now_s() - began_s_ < o_.length_s()) {
      die_in_time();
      absent_.clear();
      worker_->step([this] { bench::sleep_ms(o_.step_ms); });
      note_suspects();
    }
    notes_.write("end", now_s());
  }

 private:
  void die_in_time() {
    const bool dies = 1 <= rank_ && rank_ <= o_.deaths;
    if (!dies || now_s() - began_s_ < o_.warm_up_s + (rank_ - 1) * o_.every_s) return;
    notes_.write(fmt::format("died {}", rank_), now_s());
    std::raise(SIGKILL);
  }

  void note_suspects() {
    for (const int worker : absent_) {
      if (!suspects_.contains(worker)) notes_.write(fmt::format("suspects {}", worker), now_s());
    }
    suspects_ = absent_;
  }

  const Options& o_;
  int rank_;
  Notes notes_;
  std::vector<float> x_;
  std::set<int> absent_;    ///< left out of the current round
  std::set<int> suspects_;  ///< left out of the latest round
  std::optional<Worker> worker_;
  double began_s_ = 0;
};

/// Heartbeats of a worker, each `jitter_ms` late at most, in their order. Time is played.
void play(const Options& o) {
  constexpr double beat_s = 1 / membership::beats_per_second;
  Notes notes(o.out, 0);
  Rng rng(o.seed);
  double now = 0;
  std::uint64_t beats = 0;
  for (int death = 1; death <= o.deaths; ++death) {
    membership::FailureDetector detector(2, o.threshold());
    PeerState seen;
    double sent = now + beat_s * rng.uniform(), arrives = sent;
    const double dies = now + 60 + beat_s * rng.uniform();
    bool suspected = false, died = false;
    for (; now < dies + 20 && !(died && suspected); now += beat_s) {
      while (arrives <= now && sent < dies) {
        ++seen.heartbeat;
        sent += beat_s;
        arrives = std::max(arrives, sent + rng.uniform(0, o.jitter_ms / 1e3));
      }
      if (!died && now >= dies) {
        died = true;
        notes.write(fmt::format("died {}", death), dies);
      }
      detector.observe(1, seen, ++beats);
      const bool is_suspect = detector.is_suspect(1);
      if (is_suspect && !suspected) notes.write(fmt::format("suspects {}", death), now);
      suspected = is_suspect;
    }
  }
  notes.write("end", now);
}

int run(const Group& group, int argc, char** argv) {
  Options o;
  CLI::App app{"Time until a death is noticed; started by bench/detection.sh", "bench_detection"};
  describe(app, o);
  if (!bench::parse(group, app, argc, argv)) return 0;
  if (o.jitter_ms >= 0) {
    play(o);
    return 0;
  }
  require(group.size() > o.deaths + 1, ErrorKind::argument,
          "bench_detection: {} ranks, {} deaths; at least two ranks must survive", group.size(),
          o.deaths);
  Rank(group, o).run();
  group.disable_collectives();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv,
                  [&](const mpi::Communicator& world) { return run(Group(world), argc, argv); });
}
