#include "fastrun/requests.hpp"

#include <fstream>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fastrun;
using Texts = std::vector<std::string>;

namespace {

/// Two workers and two spares. What is said and sent is written down.
struct RunUnderWay {
  explicit RunUnderWay(bool began = true) : options(made(directory / "control")), ranks(options) {
    for (int rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].state = fastrun::Rank::State::running;
      ranks[rank].began = began && rank < options.ranks;
    }
  }
  static Options made(const std::filesystem::path& control) {
    Options options;
    options.ranks = options.spares = 2;
    options.control = control;
    return options;
  }
  void ask(const char* line) {
    std::ofstream(directory / "control", std::ios::app) << line << '\n';
    requests.look();
  }
  /// It died of a signal.
  void die(int rank) {
    ranks[rank].state = fastrun::Rank::State::ended;
    ranks[rank].status = 9;
    requests.ended(rank);
  }

  /// Its seat is another's, so it ends early and with success.
  void lose_seat(int rank) {
    ranks[rank].trains = false;
    ranks[rank].state = fastrun::Rank::State::ended;
    requests.ended(rank);
  }

  fast::testing::TemporaryDirectory directory;
  Options options;
  Ranks ranks;
  Texts said, sent;
  Requests requests{options, ranks, [this](const std::string& line) { said.push_back(line); },
                    [this](int, const std::string& line) { sent.push_back(line); }};
};

}  // namespace

TEST_CASE("a worker is asked to leave once, and the last one stays") {
  RunUnderWay run;
  run.ask("leave 1");
  run.ask("leave 1");
  CHECK(run.sent == Texts{"leave 1"});
  CHECK(run.said == Texts{"rank 1 is asked to leave"});
  run.ask("leave 0");
  CHECK(run.sent == Texts{"leave 1"});
  CHECK(run.said.back().ends_with("rank 0 cannot leave: 0 would go on, --min-workers is 1"));
}

TEST_CASE("growths are passed on by the first worker while spares are left") {
  RunUnderWay run;
  for (int k = 0; k < 3; ++k) run.ask("grow");
  CHECK(run.sent == Texts{"grow 0", "grow 0"});
  CHECK(run.said.back().ends_with("no spare is left that could join"));
  run.requests.growths().answer(0, false);
  run.ask("grow");
  CHECK(run.sent.size() == 3);
}

TEST_CASE("what a rank that died was asked goes to another one") {
  RunUnderWay run;
  run.ask("grow");
  run.die(0);
  CHECK(run.sent == Texts{"grow 0", "grow 1"});
}

TEST_CASE("what a rank that has lost its seat was asked goes to another one") {
  RunUnderWay run;
  run.ask("grow");
  run.lose_seat(0);
  CHECK(run.sent == Texts{"grow 0", "grow 1"});
}

TEST_CASE("a request that a rank leaves open as training ends goes to nobody") {
  RunUnderWay run;
  run.ask("grow");
  run.ranks[0].state = fastrun::Rank::State::ended;
  run.requests.ended(0);
  CHECK(run.sent == Texts{"grow 0"});
  CHECK(run.said.back() == "training has ended; no worker joins");
}

TEST_CASE("nobody is asked to join when a worker has trained to the end") {
  RunUnderWay run;
  run.ranks[1].state = fastrun::Rank::State::ended;
  run.requests.ended(1);
  run.ask("grow");
  CHECK(run.sent.empty());
  CHECK(run.said.size() == 1);
  CHECK(run.said.back().ends_with("training has ended; no worker joins"));
}

TEST_CASE("a worker that has left as asked to ends no training") {
  RunUnderWay run;
  run.ask("leave 1");
  run.ranks[1].state = fastrun::Rank::State::ended;
  run.requests.ended(1);
  run.ask("grow");
  CHECK(run.sent == Texts{"leave 1", "grow 0"});
}

TEST_CASE(
    "a worker that has refused to leave counts as one that stays, however often it is asked") {
  RunUnderWay run;
  run.ask("leave 0");
  run.requests.refuses_to_leave(0);
  CHECK(run.ranks[0].stays());
  run.ask("leave 0");
  CHECK(run.sent == Texts{"leave 0"});
  CHECK(run.said.back().ends_with("rank 0 cannot leave: it has refused"));
  CHECK(run.ranks[0].stays());
}

TEST_CASE("a rank that is out of reach may have passed the request on: nobody is asked again") {
  RunUnderWay run;
  run.ask("grow");
  run.ranks[0].lost = true;
  run.die(0);
  CHECK(run.sent == Texts{"grow 0"});
  CHECK(run.said.back().find("lost with the rank that was asked") != std::string::npos);
}

TEST_CASE("before training begins nobody joins or leaves") {
  RunUnderWay run(false);
  run.ask("grow");
  run.ask("leave 1");
  CHECK(run.sent.empty());
  CHECK(run.said.size() == 2);
}

TEST_CASE("ranks know whether the process manager is still needed") {
  Options options;
  options.ranks = 2;
  options.spares = 1;
  Ranks ranks(options);
  CHECK_FALSE(ranks.trained_ones_go_on());
  CHECK(ranks.in_state(fastrun::Rank::State::starting) == std::vector<int>{0, 1, 2});
  ranks[1].state = fastrun::Rank::State::running;
  CHECK(ranks.first_that_trains() == 1);
  CHECK_FALSE(ranks.trained_ones_go_on());
  ranks[1].began = true;
  CHECK(ranks.trained_ones_go_on());
  CHECK(ranks[2].is_idle());
  for (int rank = 0; rank < ranks.size(); ++rank) ranks[rank].state = fastrun::Rank::State::ended;
  CHECK(ranks.all_ended());
  CHECK_FALSE(ranks.trained_ones_go_on());
  ranks[2].status = 3 << 8;
  CHECK(describe(ranks[2].status) == "ended with status 3");
  CHECK(ranks.count([](const fastrun::Rank& one) { return one.succeeded(); }) == 2);
}
