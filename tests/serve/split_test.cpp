#include "fast_serve/served_model.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace fast::serve;

TEST_CASE("a split names a model and the shares of two versions") {
  CHECK(read_split("m=old:0.9,new:0.1")->model == "m");
  CHECK(read_split("m=old:0.9,new:0.1")->new_share == 0.1);
  CHECK(read_split("m=new:0.25,old:0.75")->new_share == 0.25);
  CHECK(read_split("m=old:0,new:1")->new_share == 1);
  for (const char* bad : {"", "m", "=old:0.5,new:0.5", "m=old:0.5", "m=old:0.5,old:0.5",
                          "m=old:0.5,new:0.6", "m=old:-1,new:2", "m=old:x,new:1",
                          "m=old0.5,new:0.5", "m=old:nan,new:1", "m=old:0.5,new:0.5,"}) {
    INFO(bad);
    CHECK_FALSE(read_split(bad));
  }
}

TEST_CASE("of the first n requests, the new version gets n times its share, rounded down") {
  for (const double share : {0.0, 0.1, 0.25, 1.0 / 3, 0.5, 0.9, 1.0}) {
    std::uint64_t given = 0;
    for (std::uint64_t n = 0; n < 3000; ++n) {
      given += is_for_new(n, share) ? 1 : 0;
      CHECK(given == static_cast<std::uint64_t>(std::floor((n + 1) * share + 1e-9)));
    }
  }
}
