#include "seats/work.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fast/exchange/spares.hpp>
#include <fast/fast.hpp>
#include <fast/topology/load.hpp>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "seats/launch.hpp"
#include "support/host_accelerator.hpp"
#include "worker/scenarios/whole_blocks.hpp"

namespace seats {
namespace {

using namespace fast;

constexpr std::size_t elements = 3000;
constexpr auto pace = std::chrono::milliseconds(2);

class Rank {
 public:
  Rank(const Plan& plan, std::string directory, Group group)
      : plan_(plan),
        directory_(std::move(directory)),
        group_(std::move(group)),
        rank_(group_.everyone().rank()) {}

  void run() {
    if (plan_.event == Event::kill_spare && rank_ == plan_.victims[0]) strike_when("first");
    const WorkerOptions options = this->options();
    TensorView view = view_of("x", std::span(x_));
    if (options.accelerator) view.device = options.accelerator->device();
    Worker worker(group_, topology_from(plan_.topology), {view}, options);
    if (group_.has_seat()) train(worker);
    const bool idle = !group_.has_seat();
    std::ofstream(file("rank", rank_)) << line(worker);
    if (idle) return;
    const bool alone =
        !worker.departed().lost.empty() || !group_.replaced().empty() || !group_.joined().empty();
    if (alone) return group_.disable_collectives();
    try {
      group_.barrier(Deadline(Seconds(30)), "seats: the end");
    } catch (const Error&) {
      if (!group_.some_are_gone()) throw;
      group_.disable_collectives();
    }
  }

 private:
  std::string file(const char* what, int number) const {
    return fmt::format("{}/{}-{}", directory_, what, number);
  }
  bool exists(const std::string& path) const { return std::filesystem::exists(path); }

  WorkerOptions options() const {
    WorkerOptions options;
    algorithm::Parameters parameters;
    if (plan_.rule == "choco") parameters = {{"fraction", "1"}};  // or elements would differ
    options.algorithm = algorithm::by_name(plan_.rule, parameters);
    options.staleness = plan_.staleness < 0 ? unbounded_staleness : plan_.staleness;
    options.suspect_after = Seconds(suspect_after_s);
    options.deadline = Seconds(30);
    options.remote_path = plan_.path == "pull"        ? RemotePathChoice::pull
                          : plan_.path == "two_sided" ? RemotePathChoice::two_sided
                                                      : RemotePathChoice::measured;
    if (plan_.weights != "host") {
      const testing::Sharing sharing{.on_host = plan_.weights == "mapped",
                                     .by_mpi = plan_.hosts > 1};
      options.accelerator = std::make_shared<testing::HostAccelerator>(sharing);
    }
    options.log = [rank = rank_](LogLevel, std::string_view text) {
      std::fprintf(stderr, "%d: %.*s\n", rank, static_cast<int>(text.size()), text.data());
    };
    return options;
  }

  void train(Worker& worker) {
    const int seat = worker.rank();
    worker.allow_growth();
    while (worker.round() < rounds_of(plan_) || others_train(worker)) {
      look_for_events(worker);
      const auto began = Clock::now();
      worker.step(
          [&] {
            std::this_thread::sleep_for(pace);
            for (double& value : x_) value += step * (target(plan_, seat) - value);
          },
          {.learning_rate = step});
      longest_s_ = std::max(longest_s_, Seconds(Clock::now() - began).count());
      torn_ += !testing::has_whole_blocks(std::span<const double>(x_));
    }
    worker.await_finish();
    own_ = x_[0];
    if (!group_.has_seat()) return;
    worker.mean_model({view_of("x", std::span(x_))});
  }

  std::string line(const Worker& worker) const {
    const int seat = group_.has_seat() ? worker.rank() : -1;
    const std::size_t lost = seat < 0 ? 0 : worker.departed().lost.size();
    return fmt::format("{} {} {} {} {} {} {}\n", rank_, seat, own_, x_[0], lost, torn_, longest_s_);
  }

  /// Workers that never wait would end one by one, and the last of them train alone. They go on
  /// until the workers of all seats have made their rounds, or no spare comes for a seat.
  bool others_train(const Worker& worker) const {
    if (plan_.staleness >= 0 || !group_.has_seat()) return false;
    const std::string own = file("done", worker.rank());
    if (!exists(own)) std::ofstream(own).put('\n');
    for (int seat = 0; seat < worker.size(); ++seat) {
      const std::vector<int> lost = worker.departed().lost;
      const bool is_lost = std::find(lost.begin(), lost.end(), seat) != lost.end();
      if (!is_lost && !exists(file("done", seat))) return true;
    }
    return false;
  }

  void look_for_events(const Worker& worker) {
    const auto& victims = plan_.victims;
    const auto place = std::find(victims.begin(), victims.end(), rank_);
    if (worker.round() < plan_.round) return;
    if (plan_.event == Event::kill_spare && !exists(directory_ + "/first"))
      std::ofstream(directory_ + "/first").put('\n');
    if (rank_ == 0 && plan_.growths() > 0) ask_to_grow();
    if (place == victims.end() || struck_ || worker.size() < plan_.seats()) return;
    // The second victim comes some time after the first one.
    const bool later = place != victims.begin() &&
                       (plan_.event == Event::kill_spare || plan_.event == Event::kill_the_seated);
    if ((later || plan_.growths() > 0) && ++rounds_since_ < 60) return;
    struck_ = true;
    std::thread([plan = plan_] {
      std::this_thread::sleep_for(std::chrono::microseconds(plan.delay_us));
      plan.event == Event::pause ? suspend(plan.pause_s()) : static_cast<void>(raise(SIGKILL));
    }).detach();
  }

  /// Once.
  void ask_to_grow() {
    if (std::exchange(asked_, true)) return;
    std::ofstream control(directory_ + "/control", std::ios::app);
    for (int k = 0; k < plan_.growths(); ++k) control << "grow\n";
  }

  /// Of a spare that dies asleep.
  void strike_when(const std::string& what) const {
    std::thread([path = directory_ + "/" + what] {
      while (!std::filesystem::exists(path))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      raise(SIGKILL);
    }).detach();
  }

  const Plan& plan_;
  std::string directory_;
  Group group_;
  int rank_;
  std::vector<double> x_ = std::vector<double>(elements);
  double own_ = 0, longest_s_ = 0;
  int torn_ = 0, rounds_since_ = 0;
  bool struck_ = false, asked_ = false;
};

}  // namespace

int work(int argc, char** argv, const Plan& plan, const std::string& directory) {
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    Rank(plan, directory, with_spares(Group(world), spares_of_launcher())).run();
    return 0;
  });
}

}  // namespace seats
