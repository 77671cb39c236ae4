#include "membership/rank_map.hpp"

#include "membership/hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;
using fast::testing::Hall;
using ClaimPhase = SeatClaim::Phase;

TEST_CASE("what was left out before the last holder is known until spares have made up for it") {
  Hall hall(2, 6);
  const auto begin = [&](int spare, std::uint64_t version, std::int64_t round) {
    hall.own[static_cast<std::size_t>(spare)].set_work({.began_in = round});
    hall.claim(spare, 1, version, ClaimPhase::seated);
  };
  hall.own[1].set_progress(10);
  CHECK(left_out_before(hall.map, 1).empty());
  begin(2, 1, 15);  // 10 to 14 are left out
  CHECK(left_out_before(hall.map, 1).empty());
  hall.own[2].set_work({.made_up = 3});
  hall.own[2].set_progress(20);
  begin(3, 2, 22);  // and 20, 21
  CHECK(left_out_before(hall.map, 1) == std::vector<RoundSpan>{{13, 15}});
  hall.own[3].set_work({.made_up = 1});
  hall.own[3].set_progress(30);
  begin(4, 3, 33);
  CHECK(left_out_before(hall.map, 1) == std::vector<RoundSpan>{{14, 15}, {20, 22}});
  hall.own[4].set_work({.made_up = 6});  // all, and 3 of those from 30 on
  hall.own[4].set_progress(33);
  begin(5, 4, 40);
  CHECK(left_out_before(hall.map, 1).empty());
}

TEST_CASE("a spare that was lost before it began has left nothing out") {
  Hall hall(2, 5);
  hall.claim(2, 2, 1, ClaimPhase::seated);  // of a growth
  hall.own[3].set_work({.began_in = 8});
  hall.claim(3, 2, 2, ClaimPhase::seated);
  hall.own[3].set_progress(9);
  hall.own[4].set_work({.began_in = 12});
  hall.claim(4, 2, 3, ClaimPhase::seated);
  CHECK(left_out_before(hall.map, 2).empty());  // 9 to 11 are of the last holder but one
}
