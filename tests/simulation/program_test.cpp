// fast-sim as its users run it. A process simulates once.
#include <sys/wait.h>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fast/core/random.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.hpp"
#include "support/seed.hpp"

using Catch::Matchers::Contains;

namespace {

struct Result {
  int status;
  std::string output;
};

Result run(const std::string& arguments) {
  const std::string command = fmt::format("timeout 100 {} {} 2>&1", FAST_SIM_PROGRAM, arguments);
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, output};
}

nlohmann::json simulated(const std::string& arguments) {
  const Result result = run(arguments + " --json");
  INFO(arguments << "\n" << result.output);
  REQUIRE(result.status == 0);
  return nlohmann::json::parse(result.output);
}

double median(const nlohmann::json& run) { return run["seconds_per_round"]["median"]; }

void check_refused(const std::string& arguments, const std::string& error) {
  const Result result = run(arguments);
  CHECK((result.status > 0 && result.status < 128));
  CHECK_THAT(result.output, Contains(error));
  CHECK(std::count(result.output.begin(), result.output.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("a message alone on its links takes their latencies and bytes by bandwidth") {
  // Every worker reads one other, so that each link has one message in each direction.
  const nlohmann::json star = simulated(
      "-n 8 --topology one_peer_exponential --step 0.001 --payload 1e6 --bandwidth 1e7 "
      "--latency 0.01 --rounds 20");
  CHECK(median(star) == Approx(2 * 0.01 + 0.1));
  CHECK(star["link_bytes"]["link0_UP"] == Approx(20 * 1e6));
  CHECK(star["link_bytes"].size() == 16);
}

TEST_CASE("messages of a round share the links of a star") {
  // Four leave and four enter each host of a torus.
  const nlohmann::json torus =
      simulated("-n 16 --step 0.001 --payload 1e6 --bandwidth 1e7 --latency 0 --rounds 5");
  CHECK(median(torus) == Approx(4 * 0.1));
}

TEST_CASE("all-reduces take the known times on a star") {
  const std::string network =
      "-n 8 --step 1 --payload 4e6 --bandwidth 1e7 --latency 0.001 --rounds 4 --exchange ";
  CHECK(median(simulated(network + "ring")) == Approx(1 + 2 * 7.0 / 8 * 0.4 + 14 * 0.002));
  CHECK(median(simulated(network + "doubling")) == Approx(1 + 3 * (0.4 + 0.002)));
  CHECK(median(simulated(network + "none")) == Approx(1));
  const nlohmann::json halving = simulated(network + "halving");
  CHECK(median(halving) == Approx(1 + 2 * 7.0 / 8 * 0.4 + 6 * 0.002));
  CHECK(halving["link_bytes"]["link0_UP"] == Approx(4 * 2 * 7.0 / 8 * 4e6));
}

TEST_CASE("an all-reduce by halving sends its largest messages within a host") {
  const std::string network =
      "-n 16 --workers-per-host 4 --step 1 --payload 4e6 --bandwidth 1e7 --latency 0.001 "
      "--memory-bandwidth 1e9 --rounds 4 --exchange halving";
  const nlohmann::json halving = simulated(network);
  // Of payload/8 and payload/16, four share the link.
  CHECK(median(halving) == Approx(1 + 2 * (0.004 * 3 / 4 + 4 * 0.4 * 3 / 16 + 2 * 0.002)));
  CHECK(halving["link_bytes"]["link0_UP"] == Approx(4 * 2 * 4 * 3.0 / 16 * 4e6));
  // Six workers on three hosts, of which 0 and 2 fold into 1 and 3 on their hosts: 1 exchanges with
  // 3 and 4, and 5 with 3.
  const nlohmann::json six =
      simulated("-n 6 --workers-per-host 2 --step 1 --payload 4e6 --rounds 4 --exchange doubling");
  for (const char* link : {"link0_UP", "link1_UP", "link2_UP"}) {
    CHECK(six["link_bytes"][link] == Approx(4 * 2 * 4e6));
  }
}

TEST_CASE("workers of a host exchange through memory") {
  const nlohmann::json ring = simulated(
      "-n 4 --workers-per-host 4 --topology ring --step 0.001 --payload 1e6 "
      "--memory-bandwidth 1e7 --rounds 5");
  CHECK(median(ring) == Approx(0.1));
  CHECK(ring["link_bytes"].empty());
}

TEST_CASE("cores of a host copy one message at a time") {
  // Four workers read two neighbors each on their host: eight copies of .1 s.
  const std::string ring =
      "-n 4 --workers-per-host 4 --topology ring --step 0.001 --payload 1e6 "
      "--memory-bandwidth 1e7 --rounds 5 --cores ";
  const auto mean = [](const std::string& arguments) {
    return simulated(arguments)["seconds_per_round"]["mean"].get<double>();
  };
  CHECK(mean(ring + "1") == Approx(0.8));
  CHECK(mean(ring + "2") == Approx(0.4));
  CHECK(mean(ring + "8") == Approx(0.1));
  // What came over a link is copied, too: half of the payload, twice.
  CHECK(mean("-n 2 --exchange halving --step 1 --payload 4e6 --bandwidth 1e9 --latency 0 "
             "--memory-bandwidth 1e7 --rounds 3 --cores 1") == Approx(1 + 2 * (0.002 + 0.2)));
}

TEST_CASE("a round of a worker is the mean over workers, of whom some are ahead") {
  // Without an exchange, nobody waits for worker 3.
  const nlohmann::json free =
      simulated("-n 4 --exchange none --step 1 --slow 3:5 --rounds 4")["seconds_per_round"];
  CHECK(free["mean"].get<double>() == Approx(5));
  CHECK(free["worker"].get<double>() == Approx(2));
}

TEST_CASE("a link between sites carries what crosses it, one latency of it and two of links") {
  const nlohmann::json pair = simulated(
      "-n 2 --topology ring --platform sites --sites 2 --step 0.001 --payload 1e6 --bandwidth 1e9 "
      "--wan-bandwidth 1e7 --wan-latency 0.05 --latency 0.01 --rounds 5");
  CHECK(median(pair) == Approx(0.05 + 2 * 0.01 + 0.1));
  CHECK(pair["link_bytes"]["wan0_1_UP"] == Approx(5e6));
}

TEST_CASE("paths of a fat tree and of a dragonfly have their links") {
  // Two hosts of one switch: two links. The directions of a ring of two do not meet.
  const std::string pair =
      "-n 2 --topology ring --step 0.001 --payload 1e6 --bandwidth 1e7 --latency 0.01 --rounds 3 ";
  CHECK(median(simulated(pair + "--platform fat_tree")) == Approx(2 * 0.01 + 0.1));
  CHECK(median(simulated(pair + "--platform dragonfly")) >= 2 * 0.01 + 0.1 - 1e-9);
}

TEST_CASE("SimGrid agrees with the recurrence where messages do not meet") {
  const std::uint64_t seed = test_seed(7);
  INFO("seed " << seed);
  fast::Rng rng(seed);
  const std::array<const char*, 5> topologies = {"ring", "torus2d", "one_peer_exponential", "base2",
                                                 "exponential"};
  for (int trial = 0; trial < 15; ++trial) {
    const std::string arguments = fmt::format(
        "-n {} --topology {} --algorithm {} --staleness {} --jitter {:.3f} --step 0.1 --payload "
        "100 "
        "--latency {:.5f} --rounds 60 --seed {}",
        3 + rng.below(14), topologies[rng.below(topologies.size())],
        rng.below(2) == 0 ? "awc" : "atc",
        std::array<const char*, 4>{"0", "1", "3", "inf"}[rng.below(4)], rng.uniform(0, 0.5),
        rng.uniform(0, 0.08), 1 + rng.below(1000));
    INFO(arguments);
    const nlohmann::json exact = simulated(arguments);
    const nlohmann::json recurrence = simulated(arguments + " --model recurrence");
    CHECK(exact["seconds"].get<double>() ==
          Approx(recurrence["seconds"].get<double>()).epsilon(0.02));
    CHECK(exact["waiting_share"].get<double>() ==
          Approx(recurrence["waiting_share"].get<double>()).margin(0.02));
  }
}

TEST_CASE("SimGrid agrees with the recurrence on all-reduces of workers with their own links") {
  const std::uint64_t seed = test_seed(8);
  INFO("seed " << seed);
  fast::Rng rng(seed);
  const std::array<const char*, 3> exchanges = {"ring", "doubling", "halving"};
  for (std::size_t trial = 0; trial < 12; ++trial) {
    const std::string arguments = fmt::format(
        "-n {} --exchange {} --jitter {:.3f} --step 0.1 --payload 1e6 --bandwidth 1e7 --latency "
        "{:.5f} --rounds 30 --seed {}",
        2 + rng.below(18), exchanges[trial % 3], rng.uniform(0, 0.5), rng.uniform(0, 0.02),
        1 + rng.below(1000));
    INFO(arguments);
    const nlohmann::json exact = simulated(arguments);
    const nlohmann::json recurrence = simulated(arguments + " --model recurrence");
    CHECK(exact["seconds"].get<double>() ==
          Approx(recurrence["seconds"].get<double>()).epsilon(0.02));
  }
}

TEST_CASE("SimGrid agrees with the recurrence on workers that are absent") {
  // Two failures, of which each costs the others 2 s at most until they suspect the worker, and 1 s
  // at most when it is back. No worker is back when another one begins a round.
  for (const char* topology : {"ring", "one_peer_exponential", "base2", "directed_ring"}) {
    for (const char* algorithm : {"awc", "atc"}) {
      const std::string arguments = fmt::format(
          "-n 16 --topology {} --algorithm {} --failures 2 --absent 60.3 --suspect-after 2 --step "
          "1 --payload 100 --rounds 300",
          topology, algorithm);
      INFO(arguments);
      const nlohmann::json exact = simulated(arguments);
      const double seconds = exact["seconds"], waiting = exact["waiting_share"];
      CHECK(exact["failures"].get<int>() == 2);
      CHECK(seconds >= 300);
      CHECK(seconds < 306);
      const nlohmann::json recurrence = simulated(arguments + " --model recurrence");
      // Messages of 100 bytes hardly slow each other.
      CHECK(recurrence["seconds"].get<double>() == Approx(seconds).epsilon(1e-6));
      CHECK(recurrence["waiting_share"].get<double>() == Approx(waiting).margin(1e-6));
      CHECK(recurrence["left_out"].get<int>() == exact["left_out"].get<int>());
      CHECK(recurrence["reads"].get<int>() == exact["reads"].get<int>());
    }
  }
}

TEST_CASE("nothing is sent to an absent worker") {
  // Worker 3 fails in round 87. It is back in round 147, or 146 where its neighbors had to wait for
  // its publication of round 87. So each neighbor sends it 101 of 160 messages.
  for (const char* algorithm : {"awc", "atc"}) {
    INFO(algorithm);
    const nlohmann::json ring = simulated(fmt::format(
        "-n 16 --topology ring --algorithm {} --failures 2 --absent 60.3 --suspect-after 2 --step "
        "1 --payload 100 --rounds 160",
        algorithm));
    REQUIRE(ring["failures"].get<int>() == 1);
    CHECK(ring["link_bytes"]["link3_DOWN"] == Approx(2 * 101 * 100));
    CHECK(ring["link_bytes"]["link3_UP"] == Approx(2 * 101 * 100));
    CHECK(ring["link_bytes"]["link9_DOWN"] == Approx(2 * 160 * 100));
  }
}

TEST_CASE("workers that are absent several times do not stop the others") {
  // Nobody is faster than its own steps: 1000 of 0.5 s. Workers come back after 1 s, and go on with
  // the others.
  const std::string failing =
      "-n 16 --topology one_peer_exponential --failures 200 --absent 1 --step 0.5 --rounds 1000 ";
  for (const char* more : {"--seed 1", "--seed 2", "--seed 3 --algorithm atc"}) {
    INFO(more);
    const nlohmann::json found = simulated(failing + more);
    CHECK(found["failures"].get<int>() > 100);
    CHECK(found["seconds"].get<double>() >= 500);
  }
}

TEST_CASE("a worker that fails in a round in which it reads nobody comes back") {
  // Of three workers, one is alone in each round. Nobody skips more rounds than its absence takes.
  const nlohmann::json found = simulated(
      "-n 3 --topology alternating_pairs --failures 100 --absent 5 --suspect-after 1 --step 1 "
      "--rounds 300");
  CHECK(found["failures"].get<int>() > 5);
  CHECK(found["seconds"].get<double>() >= 300);
}

TEST_CASE("one SimGrid platform from a file") {
  const std::string file = std::string(FAST_SOURCE_DIR) + "/tests/simulation/two_hosts.xml";
  const nlohmann::json pair = simulated(
      "-n 2 --topology ring --step 0.001 --payload 1e6 --rounds 3 "
      "--platform " +
      file);
  CHECK(median(pair) == Approx(0.02 + 0.1));
  check_refused("-n 3 --topology ring --platform " + file, "has 2 hosts, the workers need 3");
}

TEST_CASE("an option without effect is refused") {
  for (const char* exchange : {"ring", "doubling", "halving", "none"}) {
    for (const char* option :
         {"--topology ring", "--algorithm atc", "--staleness 2", "--suspect-after 2"}) {
      check_refused(fmt::format("--failures 1 --exchange {} {}", exchange, option),
                    "without effect: only neighbors have it");
    }
  }
  for (const char* option : {"--sites 3", "--wan-bandwidth 1e8", "--wan-latency 0.1"}) {
    check_refused(option, "without effect: this network has no sites");
    check_refused(std::string("--platform fat_tree ") + option, "--platform sites");
  }
  check_refused("--absent 30", "--absent: without effect: nobody fails in this run");
  check_refused("--model recurrence --cores 2", "--cores: without effect: the recurrence has none");
  check_refused("--suspect-after 2", "--failure-timeout: without effect: nobody fails");
  CHECK(run("-n 2 --exchange ring --failures 1 --absent 30 --rounds 2").status == 0);
  CHECK(run("-n 2 --exchange ring --algorithm allreduce --rounds 2").status == 0);
  CHECK(run("-n 2 --exchange none --algorithm none --rounds 2").status == 0);
}

TEST_CASE("mistakes give one line") {
  check_refused("--platform starr", "did you mean \"star\"");
  check_refused("--platform /no/such.xml", "/no/such.xml cannot be read");
  check_refused("--model simgird", "choose simgrid or recurrence; did you mean \"simgrid\"?");
  check_refused("--staleness -1", "--staleness: -1; a whole number, 0 or more, or inf is required");
  check_refused("--slow 3", "--slow: \"3\"; WORKER:FACTOR is required, for example 3:2.5");
  check_refused("--slow 99:2", "slow worker 99");
  check_refused("--slow 3:2 --slow 3:4", "--slow: worker 3 is given twice");
  check_refused("--links -1", "--links: \"-1\"; a whole number, 0 or more, is required");
  check_refused("--seed -1", "--seed: \"-1\"; a whole number from 0 to 2^64 - 1 is required");
  check_refused("--step x", "--step: \"x\"; a number is required");
  check_refused("--step 0", "they take time");
  for (const char* model : {"simgrid", "recurrence"}) {
    const std::string rest = std::string(" --model ") + model;
    for (const char* value : {"0", "-1", "nan", "inf"}) {
      for (const char* option : {"--bandwidth", "--wan-bandwidth", "--memory-bandwidth"}) {
        check_refused(fmt::format("{} {}{}", option, value, rest),
                      fmt::format("{}: {}; a finite number above 0 is required", option, value));
      }
    }
    check_refused("--latency -1" + rest, "--latency: -1; a finite number, 0 or more, is required");
    check_refused("--wan-latency nan" + rest, "--wan-latency: nan; a finite number");
    check_refused("--step inf" + rest, "steps of inf s; they take time, and end");
    check_refused("--slow 1:inf" + rest, "the factor inf of worker 1");
    check_refused("--failures 1 --absent inf" + rest, "at least 0 and finite");
  }
  check_refused("--workers-per-host 0", "at least 1 is required");
  for (const char* rule : {"allreduce", "none"}) {
    check_refused(std::string("--algorithm ") + rule, "does not exchange with neighbors");
  }
  check_refused("--topology nowhere", "nowhere");
  check_refused("--exchange ring -n 5000", "too many");
}
