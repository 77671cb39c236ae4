#include "worker/scenarios/life_scenarios.hpp"

#include <fast/topology/stencil.hpp>

#include "worker/constant.hpp"

namespace fast::testing {
namespace {

template <class Action>
std::string error_of(const Action& action, ErrorKind kind, bool everywhere) {
  try {
    action();
  } catch (const Error& error) {
    expect(error.kind() == kind && error.everywhere() == everywhere,
           fmt::format("the wrong kind of error: {}", error.what()));
    return error.what();
  }
  expect(false, "no error was thrown");
  return {};
}

}  // namespace

void broadcast_gives_all_worker_0s_weights(const Group& group) {
  WorkerOptions options = quick();
  options.initial = Initial::broadcast;
  const Constant c(group, stencil::ring(), 100.0 + group.rank(), options);
  expect(c.x[3] == 100.0, "weights are worker 0's");
}

namespace {

/// A layer that is trained, and one of any types that is not.
struct WithFrozen {
  std::vector<double> trained;
  std::vector<float> base = std::vector<float>(100'000, 3);
  std::vector<std::int64_t> table = {1, 2, 3};
  std::vector<std::byte> mask = std::vector<std::byte>(17);
  std::vector<std::pair<LogLevel, std::string>> said;

  explicit WithFrozen(int rank) : trained(5, rank) {}
  std::vector<TensorView> frozen() {
    TensorView bytes{.name = "mask", .data = mask.data(), .shape = {17}, .dtype = DType::u8};
    return {view_of("base", std::span(base)), view_of("table", std::span(table)), bytes};
  }
  WorkerOptions options(Initial initial) {
    WorkerOptions options = quick();
    options.initial = initial;
    options.frozen = frozen();
    options.participates = [](const TensorView& view) { return view.name == "trained"; };
    options.log = [this](LogLevel level, std::string_view text) { said.emplace_back(level, text); };
    return options;
  }
  /// Two rounds.
  void train(const Group& group, const WorkerOptions& options) {
    std::vector<TensorView> all = frozen();
    all.push_back(view_of("trained", std::span(trained)));
    Worker worker(group, stencil::complete(), all, options);
    for (int t = 0; t < 2; ++t) worker.step([] {});
    worker.await_finish();
  }
};

}  // namespace

void frozen_tensors_become_worker_0s(const Group& group) {
  WithFrozen model(group.rank());
  model.base[99'999] = static_cast<float>(group.rank());
  model.mask[16] = static_cast<std::byte>(group.rank() == group.size() - 1 ? 200 : 7);
  const std::byte mask_of_0 = static_cast<std::byte>(group.size() == 1 ? 200 : 7);
  model.train(group, model.options(Initial::broadcast));
  expect(model.base[99'999] == 0 && model.base[0] == 3, "the frozen layer is worker 0's");
  expect(model.mask[16] == mask_of_0, "so are bytes");
  expect(model.table == std::vector<std::int64_t>{1, 2, 3}, "and integers");
  const bool tells = group.rank() == 0 && group.size() > 1;
  const auto told = std::count_if(model.said.begin(), model.said.end(), [](const auto& line) {
    return line.second.find("frozen tensors differed") != std::string::npos &&
           line.second.find("\"base\" [100000] f32 (worker 1)") != std::string::npos &&
           line.second.find("table") == std::string::npos;
  });
  expect(told == (tells ? 1 : 0), "worker 0 names them once");
}

void frozen_tensors_that_differ_are_refused_everywhere(const Group& group) {
  WithFrozen model(group.rank());
  model.train(group, model.options(Initial::as_is));  // equal ones are accepted
  if (group.size() == 1) return;
  if (group.rank() == 1) model.table[2] = 4;
  const std::string text = error_of([&] { model.train(group, model.options(Initial::as_is)); },
                                    ErrorKind::mismatch, true);
  expect(text.find("\"table\" [3] i64 (worker 1)") != std::string::npos, text);
  expect(text.find("base") == std::string::npos, "an equal one is not named: " + text);
}

void tensors_left_out_that_differ_are_named_once(const Group& group) {
  WithFrozen model(group.rank());
  model.base[7] = static_cast<float>(group.rank());
  WorkerOptions options = model.options(Initial::broadcast);
  options.frozen.clear();
  model.train(group, options);
  expect(model.base[7] == static_cast<float>(group.rank()), "it stays as it is");
  const bool tells = group.rank() == 0 && group.size() > 1;
  std::erase_if(model.said, [](const auto& line) { return line.first != LogLevel::warning; });
  expect(model.said.size() == (tells ? 1 : 0), "worker 0 warns in one line, or nobody");
  if (!tells) return;
  expect(model.said[0].second.find("\"base\" [100000] f32 (worker 1)") != std::string::npos &&
             model.said[0].second.find("table") == std::string::npos,
         model.said[0].second);
}

void different_models_are_refused_everywhere(const Group& group) {
  if (group.size() == 1) return;
  const bool odd = group.rank() == group.size() - 1;
  const std::string text =
      error_of([&] { Constant(group, stencil::ring(), 0, quick(), odd ? 6 : 5); },
               ErrorKind::mismatch, true);
  const std::string last = fmt::format("worker {} has 6 f64 parameters", group.size() - 1);
  expect(text.find("worker 0 has 5 f64 parameters") != std::string::npos &&
             text.find(last) != std::string::npos,
         "the message names both sides: " + text);
}

void different_options_are_refused_everywhere(const Group& group) {
  if (group.size() == 1) return;
  WorkerOptions options = quick();
  if (group.rank() == 1) options.staleness = 3;
  std::string text =
      error_of([&] { Constant(group, stencil::ring(), 0, options); }, ErrorKind::mismatch, true);
  expect(text.find("staleness 0") != std::string::npos &&
             text.find("staleness 3") != std::string::npos,
         "the message names both: " + text);
  options = quick();
  if (group.rank() == 0) options.mix_every = 0;
  text = error_of([&] { Constant(group, stencil::ring(), 0, options); }, ErrorKind::argument, true);
  expect(text.find("mix_every 0") != std::string::npos, "a bad option of one reaches all: " + text);
}

void nan_loss_stops_everybody_once(const Group& group) {
  Constant c(group, stencil::ring(), 1.0);
  bool original = false;
  try {
    for (int t = 0; t < 1000; ++t) {
      c.worker.step([&] {
        if (t == 7 && group.rank() == group.size() / 2) c.x[0] = NAN;
        return std::isnan(c.x[0]) ? NAN : 1.0;
      });
      expect(!std::isnan(c.x[0]), "NaN has spread");
    }
    expect(false, "nobody stopped");
  } catch (const Error& error) {
    original = error.kind() == ErrorKind::numeric;
    expect(original || error.kind() == ErrorKind::peer_failed, error.what());
    if (original) {
      expect(std::string(error.what()).find("in round 7 is nan") != std::string::npos,
             error.what());
    }
  }
  expect(original == (group.rank() == group.size() / 2), "the failing worker alone reports");
}

void early_finishers_drop_out(const Group& group) {
  Constant c(group, stencil::ring(), group.rank());
  const int rounds = group.rank() == 0 ? 5 : 25;
  for (int t = 0; t < rounds; ++t) c.worker.step([] {});
  c.worker.finish();
  c.worker.await_finish();
  expect(c.worker.round() == rounds, "every worker made its own number of rounds");
  if (group.size() > 1 && group.rank() == 1) {
    expect(c.worker.stats().skipped > 0, "the finished neighbor was left out");
  }
}

void schedule_change_takes_effect(const Group& group) {
  const int n = group.size();
  Constant c(group, stencil::ring(true), group.rank());
  for (int t = 0; t < 3; ++t) c.worker.step([] {});
  c.worker.set_schedule(stencil::complete());
  c.worker.step([] {});
  expect_near(c.x[0], (n - 1) / 2.0, "the complete graph averages at once", 1e-12);
  for (int t = 0; t < 3; ++t) c.worker.step([] {});
  expect_near(c.x[0], (n - 1) / 2.0, "and goes on", 1e-12);
}

void rebinding_follows_moved_memory(const Group& group) {
  std::vector<double> old_place(5, group.rank()), new_place;
  WorkerOptions options = quick();
  options.weights = WeightRule::uniform_rows;
  Worker worker(group, stencil::complete(), {view_of("x", std::span(old_place))}, options);
  new_place = old_place;
  old_place.assign(5, -1);
  worker.rebind({view_of("x", std::span(new_place))});
  worker.step([] {});
  expect_near(new_place[0], (group.size() - 1) / 2.0, "the new memory is averaged");
  expect(old_place[0] == -1, "the old memory is left alone");
}

void several_workers_live_side_by_side(const Group& group) {
  Constant a(group, stencil::ring(), group.rank()), b(group, stencil::complete(), -group.rank());
  for (int t = 0; t < 10; ++t) {
    a.worker.step([] {});
    b.worker.step([] {});
  }
  expect(a.x[0] >= 0 && b.x[0] <= 0, "two workers do not mix with each other");
}

}  // namespace fast::testing
