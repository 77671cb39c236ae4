#include "fast_train/read_options.hpp"

#include <fast/core/error.hpp>
#include <fstream>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using fast_train::Options;

TEST_CASE("an automatic name has time, model, topology and workers, and no slash") {
  std::tm parts{};
  parts.tm_year = 126;
  parts.tm_mon = 10;
  parts.tm_mday = 22;
  parts.tm_hour = 9;
  parts.tm_min = 3;
  parts.tm_sec = 7;
  parts.tm_isdst = -1;
  const std::time_t at = std::mktime(&parts);
  Options o;
  CHECK(fast_train::automatic_name(o, 4, at) == "2026-11-22-090307-lenet-torus2d-4");
  o.model = "mlp:512-256";
  o.topology = "my/own graphs/pairs.toml";
  CHECK(fast_train::automatic_name(o, 16, at) == "2026-11-22-090307-mlp-512-256-pairs-16");
  o.exchange = "allreduce";
  CHECK(fast_train::automatic_name(o, 2, at) == "2026-11-22-090307-mlp-512-256-allreduce-2");
}

TEST_CASE("a new directory is never one that was there") {
  const testing::TemporaryDirectory directory;
  const auto make = [&] { return fast_train::make_new_directory(directory / "runs", "a"); };
  CHECK(make() == directory / "runs/a");
  CHECK(make() == directory / "runs/a-2");
  std::ofstream(directory / "runs/a-3") << "a file";
  CHECK(make() == directory / "runs/a-4");
  CHECK_THROWS_WITH(fast_train::make_new_directory("/proc/no", "such"),
                    ContainsSubstring("/proc/no/such") && ContainsSubstring("--out"));
}

TEST_CASE("a run has one name") {
  const auto read = [](std::vector<const char*> words) {
    Options o;
    words.insert(words.begin(), "fast-train");
    fast_train::read_into(o, static_cast<int>(words.size()), words.data());
    return o;
  };
  CHECK(read({"--run-name", "auto", "--trace"}).trainer.out);
  CHECK_THROWS_WITH(read({"--run-name", "auto", "--out", "x"}), ContainsSubstring("leave one out"));
  CHECK_THROWS_WITH(read({"--run-name", "a/b"}), ContainsSubstring("without a slash"));
}
