#include "seats/training_work.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <cstdio>

#include <algorithm>
#include <csignal>
#include <fast/data/synthetic.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/fast.hpp>
#include <fast/nn/backend.hpp>
#include <fast/train/shared_data.hpp>
#include <fast/train/trainer.hpp>
#include <fstream>
#include <string_view>
#include <thread>

#include "seats/launch.hpp"
#include "support/device_backend.hpp"

namespace seats {
namespace {

using namespace fast;

constexpr std::size_t device_bytes = std::size_t{32} << 20;

/// A backend that writes down what it has trained on. Each line is with the system when train()
/// returns: it outlives the process.
class Recorder final : public Backend {
 public:
  Recorder(std::unique_ptr<Backend> backend, const std::string& file)
      : backend_(std::move(backend)),
        file_(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  ~Recorder() override { close(file_); }
  std::string name() const override { return backend_->name(); }
  std::vector<TensorView> parameters() override { return backend_->parameters(); }
  double train(const Batch& batch, const GradientHook& hook) override {
    const double loss = backend_->train(batch, hook);
    const std::string line = fmt::format("{:016x}\n", batch_id(batch));
    require(::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size()),
            ErrorKind::resource, "seats: a batch could not be written down");
    return loss;
  }
  Evaluation evaluate(const Batch& batch) override { return backend_->evaluate(batch); }
  void set_learning_rate(double rate) override { backend_->set_learning_rate(rate); }
  std::vector<TensorView> optimizer_state() override { return backend_->optimizer_state(); }

 private:
  std::unique_ptr<Backend> backend_;
  int file_;
};

std::unique_ptr<Backend> backend_of(const TrainingPlan& plan, const std::string& file) {
  const auto recorded = [&]<class T>(T) {
    return std::make_unique<Recorder>(
        nn::make_backend<T>(nn::lenet5(), plan.seed, {nn::SgdOptions{0.02, 0.9, 0}}), file);
  };
  if (!plan.devices) return recorded(float{});
  return std::make_unique<testing::DeviceBackend>(recorded(double{}), device_bytes);
}

/// Kills or suspends this process when its turn has come.
class Striker {
 public:
  Striker(const TrainingPlan& plan, int rank) : plan_(plan), is_spare_(rank >= plan.workers) {
    const auto place = std::find(plan.victims.begin(), plan.victims.end(), rank);
    if (place == plan.victims.end()) return;
    at_ = plan.rounds[static_cast<std::size_t>(place - plan.victims.begin())];
  }
  void after_round(std::int64_t round) {
    if (!at_ || ++made_ < 1 || (is_spare_ ? made_ : round) < *at_) return;
    at_.reset();
    std::thread([plan = plan_] {
      std::this_thread::sleep_for(std::chrono::microseconds(plan.delay_us));
      plan.trouble == Trouble::pause ? suspend(TrainingPlan::pause_s)
                                     : static_cast<void>(raise(SIGKILL));
    }).detach();
  }

 private:
  const TrainingPlan& plan_;
  bool is_spare_;
  std::int64_t made_ = 0;  ///< rounds of this process
  std::optional<std::int64_t> at_;
};

train::TrainerOptions options_of(const TrainingPlan& plan, Striker& striker, int rank) {
  train::TrainerOptions options;
  options.epochs = plan.epochs;
  options.batch_size = TrainingPlan::batch_size;
  options.seed = plan.seed;
  options.learning_rate = {0.02, train::LearningRate::Schedule::cosine, 0};
  options.pace.step_s = TrainingPlan::step_s;
  options.progress = false;
  options.worker.staleness = plan.staleness;
  options.worker.suspect_after = Seconds(TrainingPlan::suspect_after_s);
  options.worker.deadline = Seconds(60);
  options.worker.on_round = [&striker](std::int64_t round) { striker.after_round(round); };
  options.worker.log = [rank](LogLevel, std::string_view text) {
    std::fprintf(stderr, "%d: %.*s\n", rank, static_cast<int>(text.size()), text.data());
  };
  return options;
}

}  // namespace

data::Splits training_data(const TrainingPlan& plan) {
  if (plan.trouble == Trouble::grow) {
    const data::Dataset all = data::synthetic_classification(
        static_cast<std::size_t>(plan.samples) + 200, {1, 28, 28}, 10, plan.seed);
    const auto trained_on = static_cast<std::size_t>(plan.samples);
    return {all.slice(0, trained_on), all.slice(trained_on, 200), {}};
  }
  data::Splits data = data::load("fashion-mnist");
  data.train = data.train.slice(0, static_cast<std::size_t>(plan.samples));
  return data;
}

std::uint64_t batch_id(const Batch& batch) {
  const std::string_view bytes(reinterpret_cast<const char*>(batch.inputs.data()),
                               batch.inputs.size_bytes());
  return std::hash<std::string_view>()(bytes);
}

int train_rank(int argc, char** argv, const TrainingPlan& plan, const std::string& directory) {
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    const Group ranks(world);
    const int rank = ranks.rank();
    const data::Splits data = train::load_once_a_host(ranks, "seats", Deadline(Seconds(60)),
                                                      [&] { return training_data(plan); });
    const Group group = with_spares(ranks, spares_of_launcher());
    const auto backend = backend_of(plan, fmt::format("{}/used-{}", directory, rank));
    Striker striker(plan, rank);
    const train::Summary summary =
        train::train(group, stencil::ring(), *backend, data, options_of(plan, striker, rank));
    if (!group.has_seat()) return 0;
    std::ofstream(fmt::format("{}/rank-{}", directory, rank))
        << fmt::format("{} {} {} {}\n", group.rank(), summary.test_accuracy_mean_model,
                       summary.lost.size(), summary.repeated_samples);
    return 0;
  });
}

std::optional<TrainingResult> result_of(const std::string& directory, int rank) {
  std::ifstream in(fmt::format("{}/rank-{}", directory, rank));
  TrainingResult result;
  if (!(in >> result.seat >> result.accuracy >> result.lost >> result.repeated))
    return std::nullopt;
  return result;
}

}  // namespace seats
