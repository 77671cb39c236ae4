#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include "exchange/group_impl.hpp"
#include "support/catch.hpp"
#include "train/overview.hpp"
#include "train/training.hpp"

using namespace fast;
using train::lay_out;
using train::Overview;

namespace {

const std::vector<int> round_robin = {0, 1, 0, 1, 0, 1, 0, 1};

/// A group of threads that are told to be on two hosts.
class TwoHosts : public GroupImpl {
 public:
  explicit TwoHosts(Group inner) : inner_(std::move(inner)) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string name() const override { return inner_.name(); }
  std::vector<int> hosts() const override {
    return {round_robin.begin(), round_robin.begin() + size()};
  }
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override {
    return inner_.all_gather(bytes, deadline, purpose);
  }
  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) override {
    return inner_.allocate(bytes_per_worker, deadline);
  }
  std::shared_ptr<GroupImpl> subgroup(int color, const Deadline& deadline) override {
    return GroupImpl::of(inner_).subgroup(color, deadline);
  }

 private:
  Group inner_;
};

std::vector<double> train_on_two_hosts(const TopologyRule& rule, bool placement) {
  std::vector<double> mean_model;
  local::run(8, [&](const Group& group) {
    train::TrainerOptions options = testing::trainer_options();
    options.placement = placement;
    auto trained =
        testing::train_small(GroupImpl::group(std::make_shared<TwoHosts>(group)), rule, options);
    if (group.rank() == 0) mean_model = std::move(trained.mean_model);
  });
  return mean_model;
}

}  // namespace

TEST_CASE("on one host ranks keep their order, and the table says nothing of hosts") {
  Overview overview;
  const Schedule ring = stencil::ring().make(8);
  const Schedule laid = lay_out(ring, std::vector<int>(8, 3), true, overview);
  CHECK(laid.at(0).in_neighbors(0) == ring.at(0).in_neighbors(0));
  CHECK(overview.hosts == 1);
  CHECK_FALSE(overview.placement);
  CHECK_THAT(overview.to_table(), !ContainsSubstring("hosts"));
}

TEST_CASE("the table tells what workers compute on, where that is said") {
  Overview overview;
  CHECK_THAT(overview.to_table(), !ContainsSubstring("devices"));
  overview.devices = {"cuda:0 (Card)", "cpu", "cuda:0 (Card)"};
  CHECK_THAT(overview.to_table(), ContainsSubstring("devices") &&
                                      ContainsSubstring("2 workers on cuda:0 (Card), 1 on cpu\n"));
}

TEST_CASE("the table says that an algorithm runs with lazy weights, and has their gap") {
  Overview overview;
  overview.algorithm = "d2";
  overview.spectrum.gap = 0.5;
  CHECK_THAT(overview.to_table(), !ContainsSubstring("lazy"));
  overview.lazy_spectrum.emplace().gap = 0.25;
  CHECK_THAT(overview.to_table(),
             ContainsSubstring("0.25\n") && ContainsSubstring("lazy, (I + W) / 2, for d2\n"));
}

TEST_CASE("on two hosts a ring's neighbors share hosts, and the table says what that saves") {
  Overview overview;
  overview.workers = 8;
  const Schedule ring = stencil::ring().make(8);
  const Schedule laid = lay_out(ring, round_robin, true, overview);
  int cut = 0;
  for (int r = 0; r < 8; ++r) {
    for (const int other : laid.at(0).in_neighbors(r)) {
      cut +=
          round_robin[static_cast<std::size_t>(r)] != round_robin[static_cast<std::size_t>(other)];
    }
  }
  CHECK(cut == 4);
  CHECK_THAT(overview.to_table(), ContainsSubstring("8 on 2 hosts"));
  CHECK_THAT(overview.to_table(), ContainsSubstring("4 of 16, in rank order 16"));
}

TEST_CASE("without placement rank order is kept, and the table says what that costs") {
  Overview overview;
  const Schedule laid = lay_out(stencil::ring().make(8), round_robin, false, overview);
  CHECK(laid.at(0).in_neighbors(0) == std::vector<int>{1, 7});
  CHECK_THAT(overview.to_table(), ContainsSubstring("16 of 16, in rank order\n"));
}

TEST_CASE("pairs on a torus are placed over all their rounds, what never repeats stays") {
  Overview overview;
  lay_out(schedule::alternating_pairs_torus({4, 2}).make(8), {0, 1, 2, 3, 0, 1, 2, 3}, true,
          overview);
  REQUIRE(overview.placement);
  CHECK(overview.placement->edges == 8 * 3);
  CHECK(overview.placement->cut_after < overview.placement->cut_before);
  Overview endless;
  lay_out(schedule::equidyn().make(8), round_robin, true, endless);
  CHECK_FALSE(endless.placement);
  CHECK(endless.hosts == 2);
}

TEST_CASE("a placed run is the run of the placed schedule") {
  const Schedule ring = stencil::ring().make(8);
  const Schedule by_hand = placed(ring, place(ring, round_robin).worker_of_rank);
  CHECK(train_on_two_hosts(ring, true) == train_on_two_hosts(by_hand, false));
  CHECK(train_on_two_hosts(ring, true) != train_on_two_hosts(ring, false));
}

TEST_CASE("the table says for which steps awc is stable and calls a bound a bound") {
  Overview overview;
  overview.spectrum.gap = 0.4;
  CHECK_THAT(overview.to_table(), !ContainsSubstring("stable"));
  overview.stability = awc_stability_factor(-.6, .9);
  overview.momentum = .9;
  CHECK_THAT(overview.to_table(),
             ContainsSubstring("learning rate x curvature < 0.76 (momentum 0.9)"));
  overview.spectrum.converged = false;
  CHECK_THAT(overview.to_table(), ContainsSubstring("at most 0.4"));
}

TEST_CASE("the table of an all-reduce has no rows about neighbors") {
  Overview overview;
  overview.topology = "ring";
  overview.algorithm = "awc";
  overview.codec = "identity";
  overview.staleness = "0";
  overview.spectrum.gap = 0.5;
  overview.workers = 4;
  overview.exchange = "shared";
  CHECK_THAT(overview.to_table(), ContainsSubstring("topology") && ContainsSubstring("spectral"));
  overview.exchange = "allreduce";
  CHECK(overview.to_table() ==
        "  workers                       4\n"
        "  exchange                      allreduce\n");
}

TEST_CASE("the table says first what is trained, where that is known") {
  Overview overview;
  overview.workers = 4;
  overview.training = {.data = "fashion-mnist",
                       .model = "",
                       .optimizer = "sgd",
                       .learning_rate = "0.05, constant",
                       .validation = "",
                       .samples = 60000,
                       .parameters = 61706,
                       .batch_size = 64,
                       .epoch_rounds = 234,
                       .epochs = 5,
                       .seed = 7};
  const std::string table = overview.to_table();
  CHECK(
      table.starts_with("  data                          fashion-mnist, 60000 samples to train on\n"
                        "  model                         61706 parameters\n"
                        "  batch                         64 on each worker, 256 in all\n"
                        "  optimizer                     sgd\n"
                        "  learning rate                 0.05, constant\n"
                        "  epochs                        5, each of 234 rounds\n"
                        "  seed                          7\n"
                        "  workers                       4\n"));
  overview.training->epochs = 1;
  CHECK_THAT(overview.to_table(), ContainsSubstring("  epochs                        1 of 234 "));
}
