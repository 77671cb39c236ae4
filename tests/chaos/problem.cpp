#include "chaos/problem.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fast/data/load.hpp>
#include <fast/data/loader.hpp>
#include <fast/nn/backend.hpp>
#include <numeric>
#include <thread>

#include "worker/scenarios/whole_blocks.hpp"

namespace chaos {
namespace {

using namespace fast;

constexpr std::size_t elements = 30'000, large_elements = 140'000;
constexpr std::size_t train_samples = 6000, batch_size = 16;
constexpr double learning_rate = 0.02;

/// How far elements may differ that differ by random roundings only: of 1/64 of the largest value,
/// several in a row. A torn read shows if the values that it mixes differ by more.
constexpr double random_roundings = 0.25;
/// The same of codes with few levels, whose steps are as large as the values; of one level, steps
/// are so large that torn reads do not show.
constexpr double few_levels = 1, one_level = 1e9;

double slack_of(const std::string& codec) {
  if (codec.starts_with("qsgd")) return codec == "qsgd2" ? one_level : few_levels;
  return codec.ends_with("stochastic") ? random_roundings : 0;
}

class Parabola : public Problem {
 public:
  Parabola(const Plan& plan, int rank)
      : rank_(rank), slack_(slack_of(plan.codec)), x_(plan.large ? large_elements : elements) {}
  std::vector<TensorView> parameters() override { return {view_of("x", std::span(x_))}; }
  void step(std::int64_t) override {
    for (double& value : x_) value += chaos::step * (target(rank_) - value);
  }
  void find_gradients(const double* weights) override {
    torn_ = torn_ || differ({weights, x_.size()});
  }
  /// Blocks of a model may be of different publications, so each element has its own gradient.
  void update(std::span<double> weights) override {
    for (double& value : weights) value += chaos::step * (target(rank_) - value);
  }
  bool torn() const override { return torn_ || differ(x_); }
  double result() override {
    return std::reduce(x_.begin(), x_.end()) / static_cast<double>(x_.size());
  }

 private:
  bool differ(std::span<const double> x) const { return !testing::has_whole_blocks(x, slack_); }

  int rank_;
  double slack_;
  bool torn_ = false;
  std::vector<double> x_;
};

class LeNet : public Problem {
 public:
  LeNet(const Plan& plan, int workers, int rank)
      : rounds_(rounds_of(plan)),
        data_(data::load("fashion-mnist")),
        train_(data_.train.slice(0, train_samples), data_.normalization, workers, rank, batch_size,
               plan.seed),
        test_(data_.test, data_.normalization, 500),
        backend_(nn::make_backend<float>(nn::lenet5(), plan.seed,
                                         {nn::SgdOptions{learning_rate, 0.9, 0}})) {}
  std::vector<TensorView> parameters() override { return backend_->parameters(); }
  void step(std::int64_t round) override {
    const auto r = static_cast<std::size_t>(round);
    const double left = std::max(0.0, 1 - static_cast<double>(round) / rounds_);
    backend_->set_learning_rate(learning_rate * left);
    backend_->train(train_.batch(r / train_.rounds(), r % train_.rounds()));
  }
  void find_gradients(const double*) override {}
  void update(std::span<double>) override {}
  bool torn() const override { return false; }
  double result() override {
    std::size_t correct = 0;
    for (const Batch& batch : test_.epoch(0)) correct += backend_->evaluate(batch).correct;
    return static_cast<double>(correct) / static_cast<double>(data_.test.size());
  }

 private:
  int rounds_;
  data::Splits data_;
  data::Loader train_, test_;
  std::unique_ptr<Backend> backend_;
};

/// At a pace that leaves time for something to happen.
class Paced : public Problem {
 public:
  Paced(std::unique_ptr<Problem> problem, std::chrono::milliseconds pause)
      : problem_(std::move(problem)), pause_(pause) {}
  std::vector<TensorView> parameters() override { return problem_->parameters(); }
  void step(std::int64_t round) override {
    std::this_thread::sleep_for(pause_);
    problem_->step(round);
  }
  void find_gradients(const double* weights) override {
    std::this_thread::sleep_for(pause_);
    problem_->find_gradients(weights);
  }
  void update(std::span<double> weights) override { problem_->update(weights); }
  bool torn() const override { return problem_->torn(); }
  double result() override { return problem_->result(); }

 private:
  std::unique_ptr<Problem> problem_;
  std::chrono::milliseconds pause_;
};

}  // namespace

std::unique_ptr<Problem> problem_of(const Plan& plan, int workers, int rank) {
  std::unique_ptr<Problem> problem;
  if (plan.lenet) {
    problem = std::make_unique<LeNet>(plan, workers, rank);
  } else {
    problem = std::make_unique<Parabola>(plan, rank);
  }
  const std::chrono::milliseconds pause(pause_ms(plan));
  return std::make_unique<Paced>(std::move(problem), pause);
}

}  // namespace chaos
