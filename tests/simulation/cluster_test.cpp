#include <fast/core/error.hpp>
#include <fast/simulation/plan.hpp>
#include <string>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::simulation;
using Catch::Matchers::Contains;

namespace {

const std::string least =
    "hosts = 4\nlink_bandwidth = 1.25e9\nstep_s = 0.1\npayload_bytes = 4_000_000\n";

Cluster parsed(const std::string& text) { return parse_cluster(text, "c.toml"); }

}  // namespace

TEST_CASE("a cluster file is read, and written again") {
  const Cluster cluster = parsed(least + "workers_per_host = 2\nstep_jitter = 0.2\n");
  CHECK(cluster.workers() == 8);
  CHECK(cluster.step_jitter == 0.2);
  CHECK(cluster.payload_bytes == 4e6);
  const Cluster again = parsed(cluster_text(cluster));
  CHECK(again.workers_per_host == 2);
  CHECK(again.link_bandwidth == cluster.link_bandwidth);
  CHECK(again.decay == cluster.decay);
}

TEST_CASE("mistakes in a cluster file give one error with file, line and key") {
  CHECK_THROWS_WITH(parsed("hosts = 2\n"),
                    Contains("cluster: c.toml: the key \"link_bandwidth\" is missing"));
  CHECK_THROWS_WITH(
      parsed(least + "step_jiter = 1\n"),
      Contains("c.toml:5: there is no key \"step_jiter\"; did you mean \"step_jitter\"?"));
  CHECK_THROWS_WITH(parsed(least + "workers_per_host = 2.5\n"),
                    Contains("c.toml:5: key \"workers_per_host\" is a whole number from 1"));
  CHECK_THROWS_WITH(parsed(least + "link_jitter = \"much\"\n"),
                    Contains("key \"link_jitter\" is a number from 0 to 3"));
  CHECK_THROWS_WITH(parsed(least + "decay = nan\n"), Contains("key \"decay\""));
  CHECK_THROWS_WITH(parsed("hosts = 1000000\nworkers_per_host = 1000\n" + least.substr(10)),
                    Contains("at most 1000000 workers"));
  CHECK_THROWS_WITH(parsed("hosts ="), Contains("c.toml:1"));
  CHECK_THROWS_WITH(load_cluster("/no/such.toml"), Contains("/no/such.toml cannot be read"));
}

namespace {

const std::string of_two =
    "step_s = 0.04\npayload_bytes = 2e6\n"
    "[[site]]\nbandwidth = 1e6\nlatency_s = 0.1\n"
    "[[site]]\nworkers = 4\nbandwidth = 2e6\nlatency_s = 0\n";

}  // namespace

TEST_CASE("a file of sites is read") {
  const PlannedSites sites = parse_sites(of_two, "s.toml");
  CHECK(sites.step_s == 0.04);
  REQUIRE(sites.sites.size() == 2);
  CHECK(sites.sites[0].workers == 1);
  CHECK(sites.sites[1].workers == 4);
  CHECK(sites.sites[1].bandwidth == 2e6);
}

TEST_CASE("mistakes in a file of sites give one error with file, line and key") {
  CHECK_THROWS_WITH(parse_sites("step_s = 1\npayload_bytes = 4\n", "s.toml"),
                    Contains("sites: s.toml: two tables [[site]] or more are required"));
  CHECK_THROWS_WITH(parse_sites(of_two.substr(0, of_two.rfind("[[")), "s.toml"),
                    Contains("two tables [[site]]"));
  CHECK_THROWS_WITH(parse_sites("site = 3\nstep_s = 1\npayload_bytes = 4\n", "s.toml"),
                    Contains("two tables [[site]]"));
  CHECK_THROWS_WITH(parse_sites(of_two + "band = 1\n", "s.toml"),
                    Contains("sites: s.toml:10: there is no key \"band\"; did you mean"));
  CHECK_THROWS_WITH(parse_sites(of_two + "[[site]]\nlatency_s = 1\n", "s.toml"),
                    Contains("sites: s.toml:10: the key \"bandwidth\" is missing"));
  CHECK_THROWS_WITH(parse_sites(of_two + "[[site]]\nbandwidth = 0\nlatency_s = 1\n", "s.toml"),
                    Contains("sites: s.toml:11: key \"bandwidth\" is a number from 1"));
}
