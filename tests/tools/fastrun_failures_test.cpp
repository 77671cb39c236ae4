#include "fastrun/ranks.hpp"

#include "support/catch.hpp"

using namespace fastrun;

namespace {

constexpr int status_3 = 3 << 8;  // as of waitpid

/// Each of them ended with status 3, on the host of this name.
Ranks failed(const std::vector<std::string>& hosts) {
  Options options;
  options.ranks = static_cast<int>(hosts.size());
  Ranks ranks(options);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].state = Rank::State::ended;
    ranks[rank].status = status_3;
    ranks[rank].pid = 40 + rank;
    ranks[rank].host = hosts[static_cast<std::size_t>(rank)];
  }
  return ranks;
}

}  // namespace

TEST_CASE("a missing program is told of once, with each host once") {
  Ranks ranks = failed({"b", "b", "a", "a", "b"});
  CHECK(missing_program("run", ranks).empty());
  ranks[3].not_startable = "No such file";
  CHECK(missing_program("run", ranks) == "run cannot be started on a (No such file)");
  for (int rank : {0, 1, 2, 4}) ranks[rank].not_startable = "No such file";
  CHECK(missing_program("run", ranks) == "run cannot be started on b, a (No such file)");
  ranks[2].not_startable = ranks[3].not_startable = "Permission denied";
  CHECK(missing_program("run", ranks) ==
        "run cannot be started on b (No such file); on a (Permission denied)");
}

TEST_CASE("nothing is added where a line has said why all ranks failed") {
  constexpr int status_2 = 2 << 8;
  Ranks ranks = failed({"a", "b"});
  CHECK_FALSE(status_that_is_told(ranks, 0));
  ranks[0].status = ranks[1].status = status_2;
  CHECK_FALSE(status_that_is_told(ranks, 0));  // nobody has said anything
  ranks[0].said = {"error: there is no option"};
  CHECK(status_that_is_told(ranks, 0) == 2);
  CHECK(status_that_is_told(ranks, 1) == 2);
  ranks[1].status = status_3;
  CHECK_FALSE(status_that_is_told(ranks, 0));
  ranks[0].not_startable = "No such file";
  CHECK_FALSE(status_that_is_told(ranks, 0));
  ranks[1].not_startable = "No such file";
  CHECK(status_that_is_told(ranks, 0) == 1);
}

TEST_CASE("of many hosts without the program, eight are named") {
  std::vector<std::string> hosts;
  for (char name = 'a'; name <= 'j'; ++name) hosts.emplace_back(1, name);
  Ranks ranks = failed(hosts);
  for (int rank = 0; rank < 8; ++rank) ranks[rank].not_startable = "no";
  CHECK(missing_program("run", ranks) == "run cannot be started on a, b, c, d, e, f, g, h (no)");
  ranks[8].not_startable = ranks[9].not_startable = "no";
  CHECK(missing_program("run", ranks) ==
        "run cannot be started on a, b, c, d, e, f, g, h and 2 more (no)");
}

TEST_CASE("fastrun tells how the first rank failed where no rank has") {
  Ranks ranks = failed({"a", "b"});
  CHECK(silent_failure(ranks, std::nullopt).empty());
  const std::string silent = "rank 1 (process 41 on b) ended with status 3 and printed no error";
  CHECK(silent_failure(ranks, 1) == silent);
  ranks[0].said = {"goes on"};
  CHECK(silent_failure(ranks, 1) == silent);
  ranks[0].said = {"ValueError: no data"};
  CHECK(silent_failure(ranks, 1).empty());
  ranks[0].status = 0;  // what it printed is no reason
  CHECK(silent_failure(ranks, 1) == silent);
  ranks[1].said = {"last words"};
  CHECK(silent_failure(ranks, 1).empty());
}

TEST_CASE("wrong usage is told apart from other failures") {
  constexpr int status_2 = 2 << 8, killed = 9;
  Ranks ranks = failed({"a", "b"});
  CHECK_FALSE(is_wrong_usage(ranks, 0));
  ranks[0].status = status_2;
  CHECK(is_wrong_usage(ranks, 0));
  CHECK_FALSE(is_wrong_usage(ranks, 1));
  CHECK_FALSE(is_wrong_usage(ranks, std::nullopt));
  ranks[1].status = killed;  // as fastrun ends the others
  CHECK(is_wrong_usage(ranks, 0));
  ranks[1].status = 0;
  CHECK_FALSE(is_wrong_usage(ranks, 0));
}

TEST_CASE("ranks that end while others may wait for them are named") {
  Ranks ranks = failed({"a", "a", "b", "b"});
  CHECK(early_ends(ranks).empty());  // nobody waits
  ranks[0].state = ranks[2].state = Rank::State::running;
  ranks[1].status = 0;
  CHECK(early_ends(ranks) ==
        "rank 1 ended with status 0, rank 3 ended with status 3 before training began; ranks 0, 2 "
        "may wait for them");
  ranks[3].status = 9;  // of a signal, which is told at once
  CHECK(early_ends(ranks) ==
        "rank 1 ended with status 0 before training began; ranks 0, 2 may wait for it");
  ranks[0].began = true;
  CHECK(early_ends(ranks).empty());
}
