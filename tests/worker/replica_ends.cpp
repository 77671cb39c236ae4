// Replicas of two ranks, of which rank 2 does something.   fastrun -n 6 replica_ends HOW FOLDER
//   kill: it dies    stop, hang: it is stopped for a moment, or for long
//   leave: it and the other rank of its replica are stopped for long
//   raise, between: it throws in a step, or between two
//   together, same: all throw an error of the library, or of the program
//   after: rank 2 dies when training is over    status: it ends with status 3
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/replicas.hpp>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace fast;

namespace {

constexpr int of_event = 10;
constexpr Seconds plenty{60};

double now_s() { return Seconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

void note_time(const std::filesystem::path& file) {
  std::ofstream(file) << fmt::format("{:.3f}", now_s());
}

/// The others of the replica wait for each message within a step.
void talk(mpi::PointToPoint& messages) {
  std::vector<std::byte> word(1);
  const int other = 1 - messages.rank();
  messages.send(other, word);
  messages.receive(other, word, Deadline(plenty));
}

/// A child continues this process, which has threads that are stopped, too.
void stop_for(std::chrono::milliseconds time) {
  const pid_t own = getpid();
  if (fork() == 0) {
    usleep(static_cast<useconds_t>(time.count() * 1000));
    kill(own, SIGCONT);
    _exit(0);
  }
  kill(own, SIGSTOP);
}

void act(const std::string& how, bool in_step, const std::filesystem::path& folder) {
  if (in_step == (how == "between")) return;
  note_time(folder / "began");
  if (how == "kill") kill(getpid(), SIGKILL);
  if (how == "stop") stop_for(std::chrono::milliseconds(700));
  if (how == "hang") stop_for(std::chrono::milliseconds(9000));
  if (how == "leave") {
    stop_for(std::chrono::milliseconds(9000));
    note_time(folder / "began");
  }
  if (how == "status") _exit(3);
  if (how == "raise" || how == "between") throw std::runtime_error("no more batches");
}

int train(const mpi::Communicator& world, const std::string& how,
          const std::filesystem::path& folder) {
  const Replicas replicas(world, 2);
  mpi::PointToPoint messages(replicas.inside(), Deadline(plenty));
  std::vector<double> weights{1.0 * replicas.shard(), 0.1 * replicas.index()};
  WorkerOptions options;
  // Silence is judged only where a rank is stopped: a busy machine holds others for seconds.
  const bool stops = how == "stop" || how == "hang" || how == "leave";
  options.suspect_after = Seconds(stops ? 4.5 : 20);
  if (how.starts_with("average_")) options.algorithm = algorithm::allreduce();
  const int rounds = how == "leave" || how == "hang" ? 450 : 60;
  const std::string what = how.substr(how.find('_') + 1);
  Worker worker =
      replicas.make_worker(stencil::ring(), {view_of("weights", std::span(weights))}, options);
  const bool takes_part = world.rank() == 2 || (what == "leave" && world.rank() == 3);
  const bool culprit = takes_part && what != "after" && what != "together" && what != "same";
  while (worker.round() < rounds) {
    const bool now = worker.round() == of_event;
    if (culprit && now) act(what, false, folder);
    worker.step([&] {
      if (culprit && now) act(what, true, folder);
      if (now && what == "same") throw std::runtime_error("the shapes do not fit");
      if (now && what == "together") throw Error(ErrorKind::data, "the shapes do not fit");
      talk(messages);
      weights[1] += 0.01 * (replicas.index() + 1 - weights[1]);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
  }
  if (world.rank() == 2 && what == "after") act("kill", true, folder);
  worker.await_finish();
  talk(messages);
  std::vector<double> mean(2);
  worker.mean_model({view_of("weights", std::span(mean))});
  std::printf("rank %d ended: %.17g %.17g mean %.17g %.17g, rejoined %d\n", world.rank(),
              weights[0], weights[1], mean[0], mean[1], static_cast<int>(worker.stats().rejoined));
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    require(argc == 3, ErrorKind::argument, "replica_ends HOW FOLDER");
    return train(world, argv[1], argv[2]);
  });
}
