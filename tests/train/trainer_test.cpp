#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/nn/backend.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/files/split.hpp"
#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/temporary_directory.hpp"
#include "train/training.hpp"

using namespace fast;
using testing::train_four;
using testing::Trained;
using testing::trainer_options;

namespace {

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

// A torus of 2x2 is a ring of four: the eigenvalues 1, 1/3, 1/3 and -1/3 become 1, 2/3, 2/3 and
// 1/3.
TEST_CASE("a summary has the gap of the lazy weights with which d2 runs on an even ring") {
  train::TrainerOptions options = trainer_options();
  options.worker.algorithm = algorithm::by_name("d2");
  const train::Summary summary = train_four(options)[0].summary;
  CHECK(summary.lazy_weights);
  CHECK(summary.spectral_gap == Approx(1.0 / 3));
}

TEST_CASE("a summary counts rounds, bytes and shares of the time") {
  const auto all = train_four(trainer_options());
  const train::Summary& summary = all[0].summary;
  CHECK(summary.rounds == 3 * (testing::train_samples / 4 / 16));
  CHECK(summary.epochs == 3);
  CHECK(summary.workers == 4);
  CHECK(summary.topology == "torus 2x2");
  CHECK(summary.spectral_gap == Approx(2.0 / 3));
  CHECK_FALSE(summary.lazy_weights);
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

TEST_CASE("a run with local steps keeps a trained model, also where epochs have no exchange") {
  auto options = trainer_options();
  options.worker.algorithm = algorithm::by_name("gasloc", {{"period", "40"}});
  options.epochs = 24;
  options.validation = 0.25;
  options.patience = 2;
  // An epoch of 4 workers has 11 rounds: three of four epochs have no exchange.
  const auto best = train_four(options);
  CHECK(best[0].summary.epochs > 4);
  CHECK(best[0].summary.test_accuracy_mean_model > 0.9);
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

TEST_CASE(
    "what robust averaging has to say of the topology is said once, not by closing rounds too") {
  std::vector<std::string> warnings;
  train::TrainerOptions options = trainer_options();
  options.worker.robust = Robust::clip;
  options.worker.log = [&](LogLevel level, std::string_view text) {
    const std::lock_guard lock(log_mutex);
    if (level == LogLevel::warning) warnings.emplace_back(text);
  };
  CHECK(train_four(options)[0].summary.closing_rounds > 0);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("robust averaging on torus"));
}

TEST_CASE("a validation share that leaves too few samples is refused with the option's name") {
  train::TrainerOptions options = trainer_options();
  options.validation = 0.99;
  CHECK_THROWS_WITH(train_four(options), ContainsSubstring("(--validation) leaves 9 of 960") &&
                                             ContainsSubstring("a round of 4 workers takes 64"));
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

TEST_CASE("a run on mixed samples learns, is the same again, and needs class labels") {
  auto options = trainer_options();
  options.mixup = 0.2;
  const auto first = train_four(options)[0], again = train_four(options)[0];
  CHECK(first.mean_model == again.mean_model);
  CHECK(first.summary.test_accuracy_mean_model > 0.9);
  options.mixup = 0;
  CHECK(train_four(options)[0].mean_model != first.mean_model);
  options.mixup = -1;
  CHECK_THROWS_WITH(train_four(options), ContainsSubstring("mixup -1"));
}
