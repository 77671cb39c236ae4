#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/nn/backend.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/schedules.hpp>
#include <fast/topology/stencil.hpp>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/files/split.hpp"
#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/temporary_directory.hpp"
#include "train/training.hpp"

using namespace fast;
using testing::Trained;
using testing::trainer_options;

namespace {

/// Four workers as threads; what each of them ends with.
std::vector<Trained> train_four(const train::TrainerOptions& options,
                                const TopologyRule& rule = stencil::torus2d()) {
  std::vector<Trained> all(4);
  local::run(4, [&](const Group& group) {
    all[static_cast<std::size_t>(group.rank())] = testing::train_small(group, rule, options);
  });
  return all;
}

std::mutex log_mutex;

bool is_fraction(double value) { return value >= 0 && value <= 1; }

}  // namespace

TEST_CASE("four workers learn, and all end with the same mean model and summary") {
  const auto all = train_four(trainer_options());
  CHECK(all[0].summary.test_accuracy_mean_model > 0.95);
  CHECK(all[0].summary.test_accuracy_worst_worker > 0.9);
  CHECK(all[0].summary.consensus_distance > 0);
  for (const Trained& each : all) {
    CHECK(each.mean_model == all[0].mean_model);
    CHECK(each.summary.to_json() == all[0].summary.to_json());
  }
}

TEST_CASE("a run's test loss is that of the samples that can be read") {
  std::vector<std::size_t> good;
  for (std::size_t i = 0; i < testing::test_samples; ++i) {
    if (i % 8 != 0) good.push_back(i);
  }
  train::Summary of_damaged, of_good;
  local::run(3, [&](const Group& group) {
    data::Splits data = testing::made_up_data();
    const data::Dataset all = data.test;
    for (const bool damaged : {true, false}) {
      data.test = damaged ? testing::with_damage(all) : data::chosen_of(all, good);
      const auto backend = testing::small_backend();
      const train::Summary summary =
          train::train(group, stencil::ring(), *backend, data, trainer_options());
      if (group.rank() == 0) (damaged ? of_damaged : of_good) = summary;
    }
  });
  CHECK(of_good.test_loss_mean_model > 0);
  CHECK(of_damaged.test_loss_mean_model == Approx(of_good.test_loss_mean_model));
  const double share = static_cast<double>(good.size()) / testing::test_samples;
  CHECK(of_damaged.test_accuracy_mean_model == Approx(of_good.test_accuracy_mean_model * share));
}

TEST_CASE("weights in slots are trained to the same bits") {
  const std::pair<const char*, TopologyRule> runs[] = {{"awc", stencil::torus2d()},
                                                       {"pairwise", schedule::alternating_pairs()}};
  for (const auto& [algorithm, rule] : runs) {
    INFO(algorithm);
    train::TrainerOptions options = trainer_options();
    options.worker.algorithm = algorithm::by_name(algorithm);
    const auto fixed = train_four(options, rule);
    options.arena = train::Arena::rotating;
    const auto rotating = train_four(options, rule);
    for (std::size_t w = 0; w < 4; ++w) {
      CHECK((fixed[w].mean_model == rotating[w].mean_model));
      CHECK(rotating[w].summary.test_accuracy_worst_worker ==
            fixed[w].summary.test_accuracy_worst_worker);
    }
    options.validation = 0.1;
    CHECK(train_four(options, rule)[0].summary.test_accuracy_mean_model > 0.9);
  }
}

TEST_CASE("what needs the weights in the model's memory does not rotate") {
  train::TrainerOptions options = trainer_options();
  options.arena = train::Arena::rotating;
  const auto refusal = [](const train::TrainerOptions& refused) {
    CHECK_THROWS_WITH(train_four(refused), Catch::Contains("rotating arena"));
  };
  auto with_ema = options, all_reduced = options, healing = options, coded = options, atc = options;
  with_ema.ema_decay = 0.9;
  all_reduced.all_reduce = true;
  healing.worker.not_finite = NotFinite::heal;
  coded.worker.codec = codec::by_name("bf16");
  atc.worker.algorithm = algorithm::by_name("atc");
  for (const auto& each : {with_ema, all_reduced, healing, coded, atc}) refusal(each);
}

TEST_CASE("a summary counts rounds, bytes and shares of the time") {
  const auto all = train_four(trainer_options());
  const train::Summary& summary = all[0].summary;
  CHECK(summary.rounds == 3 * (testing::train_samples / 4 / 16));
  CHECK(summary.epochs == 3);
  CHECK(summary.workers == 4);
  CHECK(summary.topology == "torus 2x2");
  CHECK(summary.spectral_gap == Approx(2.0 / 3));
  CHECK(summary.exchange == "local");
  CHECK(summary.algorithm == "awc");
  CHECK(summary.staleness == "0");
  const double model_bytes = static_cast<double>(all[0].mean_model.size() * sizeof(double));
  CHECK(summary.bytes_sent_per_worker_per_round == 2 * model_bytes);
  CHECK(summary.fresh_fraction == 1);
  CHECK(is_fraction(summary.wait_fraction));
  CHECK(is_fraction(summary.publish_fraction));
  CHECK(is_fraction(summary.mix_fraction));
  CHECK(is_fraction(summary.wait_fraction + summary.publish_fraction + summary.mix_fraction));
  CHECK(summary.seconds > 0);
  CHECK(summary.samples_per_second * summary.seconds == Approx(3 * 4 * 15 * 16));
}

TEST_CASE("a run at staleness 0 can be repeated bit for bit") {
  for (const char* name : {"awc", "atc"}) {
    INFO(name);
    auto options = trainer_options();
    options.worker.algorithm = algorithm::by_name(name);
    CHECK(train_four(options)[0].mean_model == train_four(options)[0].mean_model);
  }
}

TEST_CASE("batches made ahead train to the same weights, bit for bit") {
  auto options = trainer_options();
  const auto expected = train_four(options)[0].mean_model;
  options.prefetch.ahead = 2;
  options.loader_threads = 2;
  CHECK(train_four(options)[0].mean_model == expected);
}

TEST_CASE("workers that never wait learn as well") {
  auto options = trainer_options();
  options.worker.staleness = unbounded_staleness;
  const train::Summary summary = train_four(options)[0].summary;
  CHECK(summary.test_accuracy_mean_model > 0.9);
  CHECK(summary.staleness == "inf");
  CHECK(is_fraction(summary.fresh_fraction));
}

TEST_CASE("averaged gradients keep replicas equal") {
  auto options = trainer_options();
  options.all_reduce = true;
  const train::Summary summary = train_four(options)[0].summary;
  CHECK(summary.consensus_distance == 0);
  CHECK(summary.test_accuracy_mean_model == summary.test_accuracy_worst_worker);
  CHECK(summary.algorithm == "allreduce");
  CHECK(summary.test_accuracy_mean_model > 0.95);
}

TEST_CASE("averaging everybody's weights after the step is averaging gradients") {
  auto options = trainer_options();
  options.worker.algorithm = algorithm::atc();
  const auto weights = train_four(options, stencil::complete())[0].mean_model;
  options.all_reduce = true;
  const auto gradients = train_four(options, stencil::complete())[0].mean_model;
  double largest = 0;
  for (std::size_t e = 0; e < weights.size(); ++e) {
    largest = std::max(largest, std::abs(weights[e] - gradients[e]));
  }
  CHECK(largest < 1e-10);
}

namespace {

std::vector<nlohmann::json> metrics_of(const std::filesystem::path& file,
                                       std::string_view kind = {}) {
  std::ifstream in(file);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    auto metrics = nlohmann::json::parse(line);
    if (kind.empty() || metrics.at("kind") == kind) lines.push_back(std::move(metrics));
  }
  return lines;
}

}  // namespace

namespace {

/// y = (x0 - 2 x1 + 0.5, x1), of samples of two values.
data::Splits line_data() {
  Rng rng(3);
  std::vector<float> values, targets;
  for (int i = 0; i < 700; ++i) {
    const auto a = static_cast<float>(rng.normal()), b = static_cast<float>(rng.normal());
    values.insert(values.end(), {a, b});
    targets.insert(targets.end(), {a - 2 * b + 0.5F, b});
  }
  const data::Dataset all("line", {2}, std::move(values), data::Targets{std::move(targets), {2}});
  return {all.slice(0, 600), all.slice(600, 100), {}};
}

}  // namespace

TEST_CASE("workers learn a regression, and all that is reported has its measures") {
  const testing::TemporaryDirectory directory;
  const data::Splits data = line_data();
  train::TrainerOptions options = trainer_options();
  options.epochs = 8;
  options.out = directory / "run";
  options.validation = 0.1;
  std::vector<train::Summary> all(3);
  local::run(3, [&](const Group& group) {
    const auto backend =
        nn::make_backend<double>({"line", {2}, {nn::Dense{2}}, {nn::Loss::mse}}, 5);
    all[static_cast<std::size_t>(group.rank())] =
        train::train(group, stencil::ring(), *backend, data, options);
  });
  const train::Summary& summary = all[0];
  REQUIRE(summary.measures.size() == 2);
  CHECK(summary.measures[0].name == "mae");
  CHECK(summary.measures[1].name == "rmse");
  CHECK(summary.measures[0].mean_model < 0.05);
  CHECK(summary.measures[1].mean_model >= summary.measures[0].mean_model);
  CHECK(summary.measures[0].worst_worker < 0.05);
  CHECK(summary.test_loss_mean_model == Approx(std::pow(summary.measures[1].mean_model, 2)));
  for (const train::Summary& each : all) CHECK(each.to_json() == summary.to_json());
  for (int rank = 0; rank < 3; ++rank) {
    const auto lines = metrics_of(*options.out / fmt::format("metrics/{}.jsonl", rank), "epoch");
    REQUIRE(lines.size() == 8);
    CHECK(lines.back().at("test_mae") < 0.05);
    CHECK(lines.back().contains("test_rmse"));
    CHECK(lines.back().contains("validation_mae") == (rank == 0));
    CHECK(lines.back().at("gradient_norm") > 0);
    for (const char* name : {"accuracy", "test_accuracy", "validation_accuracy"})
      CHECK_FALSE(lines.back().contains(name));
    const auto end = metrics_of(*options.out / fmt::format("metrics/{}.jsonl", rank), "end");
    CHECK(end.at(0).at("test_mae") == summary.measures[0].mean_model);
    CHECK_FALSE(end.at(0).contains("test_accuracy"));
  }
}

TEST_CASE("every worker's metrics have a start, a line an epoch and an end") {
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory / "new/run";
  const train::Summary summary = train_four(options)[0].summary;
  for (int rank = 0; rank < 4; ++rank) {
    const auto lines = metrics_of(*options.out / fmt::format("metrics/{}.jsonl", rank));
    REQUIRE(lines.size() == 5);
    CHECK(lines.front().at("kind") == "start");
    CHECK(lines.front().at("workers") == 4);
    CHECK(lines.front().at("samples") == testing::train_samples);
    for (int epoch = 1; epoch <= 3; ++epoch) {
      const auto& line = lines[static_cast<std::size_t>(epoch)];
      CHECK(line.at("kind") == "epoch");
      CHECK(line.at("rank") == rank);
      CHECK(line.at("epoch") == epoch);
      CHECK(line.at("step") == 15 * epoch);
      CHECK(line.at("samples") == 15 * 16);
      CHECK(line.at("test_samples") == testing::test_samples / 4);
      CHECK(line.at("validation_accuracy") == line.at("test_accuracy"));
      CHECK(line.at("loss") > 0);
      CHECK(line.at("age_max") == 0);
      CHECK(line.at("seconds") >= line.at("seconds_training"));
    }
    CHECK(lines.back().at("kind") == "end");
    CHECK(lines.back().at("test_accuracy") == summary.test_accuracy_mean_model);
    CHECK(lines.back().at("lost") == nlohmann::json::array());
  }
  const auto merged = metrics_of(*options.out / "metrics.jsonl");
  CHECK(merged.size() == 4 * 5);
  CHECK(std::is_sorted(merged.begin(), merged.end(),
                       [](const auto& a, const auto& b) { return a["time"] < b["time"]; }));
}

TEST_CASE("phases and waits of an epoch fit in its time, whatever is exchanged") {
  const std::string exchanged = GENERATE("weights", "stale weights", "gradients", "nothing");
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory.path();
  options.all_reduce = exchanged == "gradients";
  if (exchanged == "nothing") options.worker.algorithm = algorithm::none();
  if (exchanged == "stale weights") options.worker.staleness = 2;
  options.pace = {.step_s = 0.002, .slow = {{2, 4.0}}};
  train_four(options);
  INFO(exchanged);
  for (int rank = 0; rank < 4; ++rank) {
    for (const auto& line :
         metrics_of(directory / fmt::format("metrics/{}.jsonl", rank), "epoch")) {
      double all = 0;
      for (const double phase_s : line.at("phases")) {
        CHECK(phase_s >= 0);
        all += phase_s;
      }
      const double elapsed_s =
          line.at("samples").get<double>() / line.at("samples_per_second").get<double>();
      CHECK(all == Approx(elapsed_s).epsilon(0.01));
      const double least_step_s = 15 * 0.002 * (rank == 2 ? 4 : 1);
      CHECK(line.at("phases").at("step") >= 0.99 * least_step_s);
      double waits = 0;
      for (const double wait_s : line.at("waits")) waits += wait_s;
      if (!options.all_reduce) CHECK(waits <= line.at("phases").at("wait").get<double>() + 1e-3);
    }
  }
  // Rounds at staleness 0 and of an all-reduce take as long as those of the slow worker.
  if (exchanged != "weights" && exchanged != "gradients") return;
  const auto waiting = metrics_of(directory / "metrics/0.jsonl", "epoch").back();
  CHECK(waiting.at("phases").at("wait") > 15 * 0.002);
}

TEST_CASE("metrics follow the mean model whatever is exchanged") {
  for (const bool all_reduce : {true, false}) {
    const testing::TemporaryDirectory directory;
    auto options = trainer_options();
    options.out = directory / "run";
    options.all_reduce = all_reduce;
    if (!all_reduce) options.worker.algorithm = algorithm::none();
    train_four(options);
    const auto epochs = metrics_of(*options.out / "metrics/2.jsonl", "epoch");
    INFO((all_reduce ? "gradients" : "nothing"));
    CHECK(epochs.back().at("test_loss") < epochs.front().at("test_loss"));
    CHECK(epochs.back().at("test_accuracy") > 0.9);
    CHECK((epochs.back().at("consensus_distance") == 0) == all_reduce);
    CHECK(metrics_of(*options.out / "metrics/2.jsonl", "start")[0].at("spectral_gap").is_null());
  }
}

TEST_CASE("with held-out samples worker 0 alone has a validation") {
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory.path();
  options.validation = 0.25;
  options.evaluate_every = 5;
  train_four(options);
  const auto start = metrics_of(directory / "metrics/0.jsonl", "start").at(0);
  CHECK(start.at("samples") == testing::train_samples * 3 / 4);
  CHECK(start.at("validation") ==
        fmt::format("{} samples of the training part, held out", testing::train_samples / 4));
  for (int rank = 0; rank < 4; ++rank) {
    const auto file = directory / fmt::format("metrics/{}.jsonl", rank);
    for (const auto& line : metrics_of(file, "epoch")) {
      CHECK(line.contains("validation_accuracy") == (rank == 0));
      if (rank == 0) CHECK(line.at("validation_samples") == testing::train_samples / 4);
      CHECK(line.at("test_samples") == testing::test_samples / 4);
    }
    // Epochs have 11 rounds: tests after the fifth and the tenth.
    CHECK(metrics_of(file, "evaluation").size() == 3 * 2);
  }
}

TEST_CASE("the metrics of a worker that fails say why") {
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory.path();
  options.worker.on_round = [](std::int64_t round) {
    if (round == 5) throw std::runtime_error("the fifth");
  };
  CHECK_THROWS(train_four(options));
  const auto events = metrics_of(directory / "metrics/1.jsonl", "event");
  REQUIRE(events.size() == 1);
  CHECK(events[0].at("event") == "failed");
  CHECK(events[0].at("worker") == 1);
  CHECK(!events[0].at("text").get<std::string>().empty());
}

TEST_CASE("the best model on held-out samples is a trained one with averaged gradients, too") {
  auto options = trainer_options();
  options.all_reduce = true;
  options.validation = 0.25;
  CHECK(train_four(options)[0].summary.test_accuracy_mean_model > 0.9);
}

TEST_CASE("the mean model is written as safetensors") {
  const testing::TemporaryDirectory directory;
  auto options = trainer_options();
  options.out = directory.path();
  const auto mean_model = train_four(options)[2].mean_model;
  const std::string file = contents(directory / "mean-model.safetensors");
  REQUIRE(file.size() > 8);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  REQUIRE(8 + header_bytes + mean_model.size() * sizeof(double) == file.size());
  auto header = nlohmann::ordered_json::parse(file.substr(8, header_bytes));
  CHECK(header.at("__metadata__").at("fast.input") == "16");
  CHECK(header.at("__metadata__").at("fast.classes") == "4");
  header.erase("__metadata__");
  CHECK(header.size() == 4);
  CHECK(header.at("fc1.weight").at("shape") == std::vector<int>{24, 16});
  std::size_t end = 0;
  for (const auto& [name, tensor] : header.items()) {
    INFO(name);
    CHECK(tensor.at("dtype") == "F64");
    CHECK(tensor.at("data_offsets")[0] == end);
    const auto shape = tensor.at("shape").get<std::vector<std::size_t>>();
    end += 8 * std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
    CHECK(tensor.at("data_offsets")[1] == end);
  }
  CHECK(std::memcmp(file.data() + 8 + header_bytes, mean_model.data(), end) == 0);
}

TEST_CASE("workers of different batch sizes are told so") {
  CHECK_THROWS_WITH(local::run(2,
                               [](const Group& group) {
                                 auto options = trainer_options();
                                 options.batch_size += static_cast<std::size_t>(group.rank());
                                 testing::train_small(group, stencil::ring(), options);
                               }),
                    ContainsSubstring("batch size 16") && ContainsSubstring("batch size 17"));
}

TEST_CASE("the best mean model on held-out samples is the result, the same on every worker") {
  auto options = trainer_options();
  options.validation = 0.25;
  const auto best = train_four(options);
  CHECK(best[0].summary.rounds == 3 * (testing::train_samples * 3 / 4 / 4 / 16));
  CHECK(best[0].summary.test_accuracy_mean_model > 0.9);
  for (const Trained& each : best) {
    CHECK(each.mean_model == best[0].mean_model);
    CHECK(each.summary.to_json() == best[0].summary.to_json());
  }
}

TEST_CASE("a run that gets no better ends early, with all workers") {
  for (const std::int64_t staleness : {std::int64_t{0}, unbounded_staleness}) {
    auto options = trainer_options();
    options.epochs = 60;
    options.validation = 0.25;
    options.patience = 4;
    options.worker.staleness = staleness;
    const auto stopped = train_four(options);
    CHECK(stopped[0].summary.epochs >= 5);
    if (staleness == 0) {  // else the others may have ended before worker 0 decides
      CHECK(stopped[0].summary.epochs < 60);
      CHECK(stopped[0].summary.test_accuracy_mean_model > 0.9);
    }
    for (const Trained& each : stopped) {
      CHECK(each.mean_model == stopped[0].mean_model);
      CHECK(each.summary.to_json() == stopped[0].summary.to_json());
    }
  }
}

TEST_CASE("a run with averaged weights ends with these") {
  auto options = trainer_options();
  const auto plain = train_four(options)[0];
  options.ema_decay = 0.9;
  const auto averaged = train_four(options)[0];
  CHECK(averaged.mean_model != plain.mean_model);
  CHECK(averaged.summary.test_accuracy_mean_model > 0.9);
  options.validation = 0.1;
  CHECK_THROWS_WITH(train_four(options), ContainsSubstring("choose one"));
}

TEST_CASE("closing rounds are counted, skipped when unwanted, and run at any staleness") {
  auto options = trainer_options();
  options.shards = data::sharding_from("dirichlet:0.1");
  CHECK(train_four(options)[0].summary.closing_rounds == 3);
  for (const std::int64_t staleness : {std::int64_t{0}, unbounded_staleness}) {
    options.worker.staleness = staleness;
    options.closing_rounds = 0;
    const double apart = train_four(options)[0].summary.consensus_distance;
    options.closing_rounds = 8;
    const auto closed = train_four(options)[0].summary;
    CHECK(closed.closing_rounds == 8);
    CHECK(closed.rounds == 45);
    CHECK(closed.consensus_distance < apart / 10);
  }
}

TEST_CASE("a topology in parts is told at the start and in the summary") {
  const TopologyRule parts = parse_topology("edges = [[0, 1], [2, 3]]", "parts.toml");
  train::TrainerOptions options = trainer_options();
  options.closing_rounds = 0;
  std::vector<std::string> warnings;
  options.worker.log = [&](LogLevel level, std::string_view text) {
    const std::lock_guard lock(log_mutex);
    if (level == LogLevel::warning) warnings.emplace_back(text);
  };
  for (const Trained& each : train_four(options, parts)) {
    CHECK_FALSE(each.summary.connected);
    CHECK_THAT(each.summary.to_table(), ContainsSubstring("connected  "));
    CHECK_THAT(each.summary.to_json(), ContainsSubstring("\"connected\": false"));
  }
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("topology parts is not connected") &&
                              ContainsSubstring("worker 0's values never reach worker 2"));
  warnings.clear();
  CHECK(train_four(options)[0].summary.connected);
  options.all_reduce = true;
  CHECK(train_four(options, parts)[0].summary.connected);
  CHECK(warnings.empty());
}

TEST_CASE("a worker that shall be slow is one of the run, and learns with the others") {
  auto options = trainer_options();
  options.pace = {0, {{4, 2.0}}};
  CHECK_THROWS_WITH(train_four(options), ContainsSubstring("worker 4 shall be slow"));
  options.pace = {1e-4, {{1, 3.0}}};
  CHECK(train_four(options)[0].summary.test_accuracy_mean_model > 0.95);
}

TEST_CASE("options out of range are refused before training") {
  auto options = trainer_options();
  options.epochs = 0;
  CHECK_THROWS_WITH(train_four(options), ContainsSubstring("0 epochs"));
  options = trainer_options();
  options.batch_size = 241;
  CHECK_THROWS_WITH(train_four(options), ContainsSubstring("at most 240"));
}
