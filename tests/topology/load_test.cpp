#include <unistd.h>

#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "topology/graph_checks.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text, const std::string& suffix = ".toml")
      : path_(std::filesystem::temp_directory_path() /
              ("fast-topology-" + std::to_string(getpid()) + suffix)) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Topology loaded(const std::string& text, int workers) {
  return load_topology(TemporaryFile(text).path()).make(workers).at(0);
}

std::string error_of(const std::string& text, int workers = 8) {
  try {
    loaded(text, workers);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::topology);
    CHECK_THAT(error.what(), Contains("fast-topology-"));
    return error.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("a name in a file is shown, not obeyed by terminals") {
  const std::string text = "name = \"x\\u001b[31m\"\nedges = [[0, 1]]";
  CHECK(parse_topology(text, "pair.toml").make(2).name() == "x\\x1b[31m");
  CHECK(parse_topology("edges = [[0, 1]]", "p\x1b[2Jr.toml").make(2).name() == "p\\x1b[2Jr");
}

TEST_CASE("every file in topology/ makes what its name says") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FAST_SOURCE_DIR "/topology")) {
    INFO(entry.path());
    const TopologyRule rule = load_topology(entry.path());
    for (const int workers : {4, 6, 16}) {
      try {
        check_graph(rule.make(workers).at(0));
        ++files;
      } catch (const Error& error) {
        CHECK_THAT(error.what(), Contains("start") && Contains("workers"));
      }
    }
  }
  CHECK(files >= 24);
  const std::string path = FAST_SOURCE_DIR "/topology/";
  CHECK(load_topology(path + "torus-2x2.toml").make(4).at(0).in_degree(0) == 2);
  CHECK(load_topology(path + "directed-ring.toml").make(4).at(0).in_degree(0) == 1);
  CHECK(load_topology(path + "moore.toml").make(16).at(0).in_degree(0) == 8);
  CHECK(load_topology(path + "two-triangles.toml").make(6).at(0).in_neighbors(2) ==
        std::vector<int>{0, 1, 3});
  CHECK(load_topology(path + "one-peer-exponential.toml").make(16).period() == 4);
  const Topology weighted = load_topology(path + "weighted.toml").make(4).at(0);
  CHECK(weighted.given_weights(0) == std::vector<double>{0.25, 0.25, 0.25});
  CHECK(weighted.given_self_weight(0) == 0.25);
  CHECK(weighted.given_self_weight(1) == 0.75);
}

TEST_CASE("a name of a grid may have its sides") {
  CHECK(topology_by_name("torus2d:2x8").make(16).name() == "torus 2x8");
  CHECK(topology_by_name("grid:2x3").make(6).at(0).in_neighbors(0) == std::vector<int>{1, 3});
  CHECK(topology_by_name("grid3d:3x1x2").make(6).name() == "grid 3x1x2");
  CHECK(topology_by_name("moore:3x4").make(12).at(0).in_neighbors(0).size() == 8);
  CHECK_FALSE(is_schedule_name("torus2d:2x8"));
  CHECK_THROWS_WITH(topology_by_name("torus2d:2x8").make(12), Contains("2x8"));
  for (const char* text : {"", "2x", "x8", "2*8", "2x8 ", "two"}) {
    CHECK_THROWS_WITH(topology_by_name(fmt::format("torus2d:{}", text)),
                      Contains(fmt::format("\"{}\" are no sides; write torus2d:4x8", text)));
  }
  CHECK_THROWS_WITH(topology_by_name("torus2d:16"), Contains("with 1 sides (16), 2 are required"));
  CHECK_THROWS_WITH(topology_by_name("torus2d:0x8"), Contains("0"));
  CHECK_THROWS_WITH(topology_by_name("ring:8"), Contains("ring has no sides; leave out \":8\""));
  CHECK_THROWS_WITH(topology_by_name("rnig:8"), Contains("no \"rnig\""));
}

TEST_CASE("names, aliases and paths are told apart") {
  CHECK(topology_by_name("torus").make(4).name() == "torus 2x2");
  CHECK(topology_by_name("one-peer-exponential").make(4).period() == 2);
  CHECK(topology_from("grid").make(6).name() == "grid 3x2");
  CHECK(topology_from(FAST_SOURCE_DIR "/topology/ring.toml").make(3).name() == "ring");
  for (const TopologyName& known : topology_names()) {
    CHECK(topology_by_name(known.name).make(4).workers() == 4);
    CHECK_THROWS_WITH(topology_by_name("rnig"),
                      Contains("no \"rnig\"") && Contains(std::string(known.name)));
  }
  CHECK_THROWS_WITH(topology_from("missing.toml"),
                    Contains("missing.toml cannot be read: there is no such file"));
  CHECK_THROWS_WITH(topology_from("no/such"), Contains("no/such cannot be read"));
}

TEST_CASE("letters of any language may stand in names and comments") {
  for (const char* name :
       {"\"\xd1\x8a\"", "'\xd1\x8a\\'", "\"\\\"\xd1\x8a\"", "\"\"\"a\n\"\xd1\x8a\"\"\"\""}) {
    const std::string text = "# \xd1\x8a\nname = " + std::string(name) + "\nedges = [[0, 1]]";
    INFO(text);
    CHECK_THAT(loaded(text, 2).name(), Contains("\xd1\x8a"));
  }
}

TEST_CASE("a directed edge is read by its second worker only") {
  const Topology g = loaded("directed = true\nedges = [[0, 1], [0, 2], [2, 0]]", 3);
  CHECK(g.in_neighbors(0) == std::vector<int>{2});
  CHECK(g.in_neighbors(1) == std::vector<int>{0});
  CHECK(g.out_neighbors(0) == std::vector<int>{1, 2});
}

TEST_CASE("edges that name workers the run lacks say which and how many are needed") {
  CHECK_THAT(error_of("edges = [[0, 1], [1, 2],\n [3, 12], [4, 5]]"),
             Contains("names worker 12, this run has 8 (0..7); start at least 13 workers or edit "
                      "edge 3 (line 2)."));
  CHECK_THAT(error_of("workers = 2\nedges = [[0, 1], [1, 2]]"),
             Contains("names worker 2, key \"workers\" says 2 (0..1)"));
  CHECK_THAT(error_of("workers = 3\nedges = [[0, 1], [1, 2]]"),
             Contains("is for 3 workers, this run has 8; start 3 workers"));
  CHECK(loaded("edges = [[0, 1]]", 8).in_degree(7) == 0);
}

TEST_CASE("malformed files name line, key and what is required") {
  const std::pair<const char*, const char*> cases[] = {
      {"stencil = \"ring\"\nedges = [", ".toml:2:"},
      {"[# no key", ".toml:1:"},
      {"\n\xef\xbb\xb7", ".toml:2:"},
      {"\n\xef\xbb\xb7 = 1", ".toml:2: a letter that is not ASCII"},
      {"a = +b\"\xef\xbb\xb7", ".toml:1:"},
      {"stencil = \"ring\"\xd1\x8a", ".toml:1:"},
      {"name = \"a\\\"b\"\xd1\x8a", ".toml:1:"},
      {"name = a'\xd1\x8a", ".toml:1:"},
      {"name = \"\"\"\nx\"\"\" \xd1\x8a", ".toml:2:"},
      {"", "0 of the keys stencil, schedule, edges and round"},
      {"stencil = \"ring\"\nschedule = \"ring\"", "2 of the keys"},
      {"\nstencil = \"ringg\"", ":2: key \"stencil\" holds an unknown name"},
      {"stencil = \"ringg\"", "choose from ring, directed_ring, torus2d"},
      {"stencil = 3", "key \"stencil\" holds a whole number, a string is required"},
      {"stencil = \"one_peer_exponential\"", "is a schedule; write schedule = "},
      {"schedule = \"ring\"", "is a stencil; write stencil = "},
      {"stencil = \"torus\"\nside = [2, 2]", ":2: key \"side\" is not known here; choose from"},
      {"stencil = \"ring\"\nsides = [2, 2]", "key \"sides\" is not known here"},
      {"stencil = \"torus\"\nsides = \"2x2\"", ":2: key \"sides\" holds a string, a list"},
      {"stencil = \"torus\"\nsides = [2, 0]", "key \"sides\" holds 0, 1 to 2147483647"},
      {"stencil = \"torus\"\nsides = [2, 2.5]", "holds a fraction, an integer"},
      {"stencil = \"torus\"\nsides = [65536, 65536]", "more workers than"},
      {"stencil = \"torus\"\nsides = []", "key \"sides\" is empty"},
      {"stencil = \"torus\"\nsides = [2, 3]", "made for 6 workers, this run has 8"},
      {"stencil = \"torus\"\nworkers = 4\nsides = [2, 3]", "made for 6 workers"},
      {"stencil = \"torus3d\"\nsides = [2, 2]", "means 2 dimensions, 3 are said elsewhere"},
      {"stencil = \"torus\"\ndimensions = 9", "holds 9, 1 to 3 is required"},
      {"stencil = \"torus\"\noffsets = [[1, 0], [1]]", "means 1 dimensions, 2 are said"},
      {"stencil = \"torus\"\noffsets = [[1, 0], []]", "empty offset"},
      {"stencil = \"torus\"\noffsets = [1]", "a list of integers is required"},
      {"stencil = \"torus\"\noffsets = [[1]]\nneighborhood = \"moore\"", "leave one of them out"},
      {"stencil = \"torus\"\nneighborhood = \"more\"", "choose von_neumann or moore"},
      {"stencil = \"ring\"\ndirected = 1", "true or false is required"},
      {"stencil = \"ring\"\nworkers = 0", "key \"workers\" holds 0"},
      {"stencil = \"ring\"\nworkers = 99999999999", "holds 99999999999"},
      {"edges = []", "needs a list of edges"},
      {"edges = 3", "needs a list of edges"},
      {"edges = [[0, 1],\n[2]]", ":2: key \"edges\" holds an edge that is not [from, to]"},
      {"edges = [[0, -1]]", "holds -1, 0 to"},
      {"edges = [[0, 2000000000]]", "holds 2000000000, 0 to 1048575"},
      {"stencil = \"complete\"\nworkers = 2147483647", "choose exponential"},
      {"edges = [[0, 1, \"a\"]]", "holds a string as weight"},
      {"edges = [[0, 1],\n[1, 2],\n[1, 0]]", ":3: edge 3 of key \"edges\" repeats edge 1"},
      {"directed = true\nedges = [[0, 1], [0, 1]]", "repeats edge 1 (0 to 1)"},
      {"edges = [[0, 1], [3, 3]]", "joins worker 3 with itself"},
      {"edges = [[0, 1, 0.5], [1, 2]]", "edge 2 of key \"edges\" has no weight"},
      {"\nedges = [[0, 1, 0.75], [1, 2, 0.5]]", ":2: key \"edges\": Topology"},
      {"edges = [[0, 1, 0.75], [1, 2, 0.5]]", "worker 1's weights sum to 1.25"},
      {"edges = [[0, 1, -0.5]]", "the weight -0.5"},
      {"edges = [[0, 1, nan]]", "the weight nan"},
      {"edges = [[0, 1, 0.5], [1, 1, 0.75]]", "sum to 1.25, required 1"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK_THAT(error_of(text), Contains(message));
  }
}

TEST_CASE("rounds, weights of offsets, rules and random graphs come from files") {
  const TopologyRule turns = parse_topology(
      "name = \"turns\"\n[[round]]\nstencil = \"ring\"\n[[round]]\nedges = [[0, 2]]\n",
      "turns.toml");
  const Schedule schedule = turns.make(5);
  CHECK(schedule.period() == 2);
  CHECK(schedule.at(0).in_degree(4) == 2);
  CHECK(schedule.at(1).in_neighbors(2) == std::vector<int>{0});
  CHECK(turns.natural_workers() == 3);

  const Topology weighted =
      loaded("stencil = \"torus1d\"\noffsets = [[-1], [1]]\nweights = [0.5, 0.25]", 4);
  CHECK(weighted.given_weights(0) == std::vector<double>{0.25, 0.5});
  CHECK(weighted.given_self_weight(0) == 0.25);

  const Topology lazy = loaded("stencil = \"ring\"\nweights = \"uniform_rows\"\nlazy = true", 4);
  CHECK(lazy.preferred_weights() == WeightRule::uniform_rows);
  CHECK(lazy.prefers_lazy());
  CHECK(loaded("stencil = \"random_regular\"\ndegree = 6\nseed = 3", 20).in_degree(7) == 6);
  CHECK(loaded("stencil = \"star\"\ncenter = 3", 5).in_degree(3) == 4);
  CHECK(parse_topology("schedule = \"base\"\nneighbors = 3", "b.toml").make(16).period() == 2);
  CHECK_THAT(error_of("[[round]]\nschedule = \"equidyn\""), Contains(":1: key \"schedule\""));
  CHECK_THAT(error_of("stencil = \"ring\"\nweights = \"best\""),
             Contains("choose from metropolis"));
  CHECK_THAT(error_of("stencil = \"ring\"\nlazy = 1"), Contains("key \"lazy\" holds a whole"));
  CHECK_THAT(error_of("stencil = \"small_world\"\nneighbors = 3"), Contains("an even number"));
}

TEST_CASE("Matrix Market files give graphs and weights") {
  const auto matrix = [](const std::string& text) {
    const TopologyRule rule = parse_topology(text, "m.mtx");
    return rule.make(rule.natural_workers()).at(0);
  };
  const Topology ring = matrix(
      "%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n3 3 3\n2 1\n3 2\n3 1\n");
  CHECK(ring.in_neighbors(0) == std::vector<int>{1, 2});
  CHECK_FALSE(ring.has_given_weights());
  const Topology weighted = matrix(
      "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 0.75\n1 2 .25\n2 1 0.5\n2 2 "
      "5e-1\n");
  CHECK(weighted.given_weights(0) == std::vector<double>{0.25});
  CHECK(weighted.given_self_weight(1) == 0.5);
  CHECK_FALSE(matrix("%%MatrixMarket matrix array integer symmetric\n3 3\n0\n1\n1\n0\n1\n0\n")
                  .has_given_weights());
  CHECK(matrix("%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 2 1\n2 1 1\n")
            .given_self_weight(0) == 0);
  // Empty lines and comments may follow.
  CHECK(matrix("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 .5\n\n% end\n \n")
            .given_weights(0) == std::vector<double>{0.5});

  const std::pair<const char*, const char*> bad[] = {
      {"", "m.mtx:1: no \"%%MatrixMarket"},
      {"%%MatrixMarket matrix coordinate complex general\n", ":1: field \"complex\""},
      {"%%MatrixMarket matrix coordinate real general\n2 3 1\n", ":2: 2 rows and 3 columns"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n", "ends where another"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", ":3: 3, 1 to 2"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 x\n", ":3: \"x\", a number"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 -1\n", ":3: the weight -1"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 .5\n1 2 .5\n", "repeats edge 1"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1.5\n", "sum to 1.5"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 .5\n2 1 .5\n",
       ":4: more entries than the sizes tell"},
      {"%%MatrixMarket matrix array real general\n2 2\n.5\n.5\n.5\n.5\n.5\n",
       ":7: more entries than the sizes tell"},
      {"%%MatrixMarket matrix array real general\n2 2\n.5 .5\n.5 .5\n",
       ":3: 2 numbers; 1 on each line is required"},
  };
  for (const auto& [text, message] : bad) CHECK_THROWS_WITH(matrix(text), Contains(message));
}

TEST_CASE("a file of another kind is refused by its name") {
  const TemporaryFile text("ring", ".txt");
  CHECK_THROWS_WITH(load_topology(text.path()), Contains("does not end in .toml or .mtx"));
  CHECK_THROWS_WITH(load_topology("/"), Contains("/ cannot be read: it is a directory"));
}
