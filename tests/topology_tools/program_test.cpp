// fast-topology as its users run it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/topology_tools/picture.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "topology_tools/mutations.hpp"

using Catch::Matchers::Contains;

namespace {

struct Result {
  int status;
  std::string output;
};

Result run(const std::string& arguments) {
  const std::string command = std::string(FAST_TOPOLOGY_PROGRAM) + " " + arguments + " 2>&1";
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

nlohmann::json shown(const std::string& arguments) {
  const Result result = run("show " + arguments + " --json");
  INFO(result.output);
  REQUIRE(result.status == 0);
  return nlohmann::json::parse(result.output);
}

std::filesystem::path fresh_folder() {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("fast-topology-program-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

TEST_CASE("a momentum that no optimizer has is refused") {
  for (const char* momentum : {"1.5", "1", "-0.1", "nan"}) {
    const Result result = run(fmt::format("show ring -n 4 --momentum {}", momentum));
    CHECK(result.status != 0);
    CHECK_THAT(result.output, Contains("--momentum"));
  }
  CHECK(run("show ring -n 4 --momentum 0").status == 0);
}

TEST_CASE("show --json prints the known gaps and smallest eigenvalues") {
  const std::string folder = fresh_folder();
  const auto torus = [&](const std::string& sides) {
    const std::string path = folder + "/" + sides + ".toml";
    std::ofstream(path) << "stencil = \"torus\"\nsides = [" << sides << "]\n";
    return "\"" + path + "\"";
  };
  struct Known {
    std::string arguments;
    double gap, smallest;
  };
  const Known known[] = {{"ring -n 8", .195262, -1. / 3},
                         {"ring -n 16", .050747, -1. / 3},
                         {"ring -n 64", .003210, -1. / 3},
                         {torus("2, 2"), .666667, -1. / 3},
                         {torus("2, 4"), .5, -.5},
                         {torus("3, 3"), .6, -.2},
                         {torus("4, 4"), .4, -.6},
                         {torus("8, 8"), .117157, -.6},
                         {"grid2d -n 16", .131359, -.430843},
                         {"moore2d -n 16", .666667, -1. / 3},
                         {"moore2d -n 64", .195262, -1. / 3},
                         {"torus3d -n 64", .285714, -.714286},
                         {"hypercube -n 16", .4, -.6},
                         {"star -n 8", .125, 0}};
  for (const Known& row : known) {
    const nlohmann::json found = shown(row.arguments);
    INFO(row.arguments);
    CHECK(found["gap"].get<double>() == Approx(row.gap).margin(1e-5));
    CHECK(found["smallest_eigenvalue"].get<double>() == Approx(row.smallest).margin(1e-5));
    CHECK(found["doubly_stochastic"] == true);
    CHECK(found["bounds"].empty());
  }
  const std::pair<int, double> exponential[] = {
      {8, .5}, {12, .4}, {16, .4}, {64, .285714}, {256, .222222}};
  for (const auto& [n, gap] : exponential) {
    const nlohmann::json found =
        shown("exponential --weights uniform_rows -n " + std::to_string(n));
    CHECK(found["gap"].get<double>() == Approx(gap).margin(1e-5));
    CHECK(found["symmetric"] == false);
    CHECK(found["smallest_eigenvalue"].is_null());
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("one-peer exponential is exact for powers of two and warned about for others") {
  for (const int n : {2, 4, 8, 16, 32, 64}) {
    const nlohmann::json found = shown("one_peer_exponential -n " + std::to_string(n));
    CHECK(found["gap"] == 1);
    CHECK(found["warnings"].empty());
  }
  CHECK_THAT(run("show one_peer_exponential -n 12").output,
             Contains("12 workers are no power of two") && Contains("off by 0.0417"));
  for (int n = 3; n <= 64; n += 7) {  // none of them a power of two
    CHECK_THAT(run("show one_peer_exponential -n " + std::to_string(n)).output,
               Contains("no power of two") && Contains("off by 0."));
  }
}

TEST_CASE("list, show, compare and pictures do what they say") {
  CHECK_THAT(run("list").output, Contains("torus2d") && Contains("base2"));
  CHECK_THAT(run("show torus2d -n 4 --parameters 1e6 --matrix").output,
             Contains("8 MB a worker") && Contains("0.3333"));
  CHECK_THAT(run("show ring -n 5 --svg -").output, Contains("<svg") && Contains("</svg>"));
  CHECK_THAT(run("show base2 -n 5 --dot -").output, Contains("digraph") && Contains("cluster_1"));
  const std::string table = run("compare ring torus2d complete hypercube -n 16").output;
  CHECK(table.find("complete") < table.find("torus 4x4"));
  CHECK(table.find("torus 4x4") < table.find("\nring"));
  const Result fitting = run("compare ring hypercube -n 12");
  CHECK(fitting.status == 0);
  CHECK_THAT(fitting.output, Contains("left out: hypercube"));
  const Result wrong = run("show rnig");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.output, Contains("there is no \"rnig\"; choose from"));
}

TEST_CASE("compare and plan refuse a misspelled topology and print no table") {
  const std::string folder = fresh_folder();
  std::ofstream(folder + "/hosts.toml")
      << "hosts = 2\nlink_bandwidth = 1e9\nstep_s = 0.1\npayload_bytes = 1e6\n";
  for (const std::string& arguments :
       {std::string("compare ring rnig"),
        "plan --cluster " + folder + "/hosts.toml --topologies ring,rnig"}) {
    const Result wrong = run(arguments);
    INFO(arguments);
    CHECK(wrong.status == 2);
    CHECK(std::count(wrong.output.begin(), wrong.output.end(), '\n') == 1);
    CHECK_THAT(wrong.output, Contains("there is no \"rnig\"; choose from"));
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("the columns of a comparison of many workers stay apart") {
  // The gap of a ring is (1 - cos(2 π / n)) 2/3: 1.46e-6 for 3000. It needs ln(1000) / gap rounds.
  const std::string table = run("compare ring -n 3000").output;
  CHECK(std::regex_search(
      table, std::regex("\nring +2 +1\\.46e-06 +1500 +4\\.72e\\+06 +9\\.449e\\+06\n")));
}

TEST_CASE("a gap that is not above 0 is no reason to say that workers do not agree") {
  const std::string star = run("show star -n 10 --weights uniform_rows").output;
  CHECK_THAT(star, Contains("gives no rate") && !Contains("do not come to agree"));
  const std::string table = run("compare ring star -n 10 --weights uniform_rows").output;
  CHECK(table.find("\nstar") < table.find("\nring"));
  const std::filesystem::path folder = fresh_folder();
  const std::string path = folder / "apart.toml";
  std::ofstream(path) << "edges = [[0, 1], [2, 3]]\n";
  CHECK_THAT(run("show " + path).output, Contains("do not come to agree"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("pairs on a torus are drawn on a grid, a hierarchy as clusters") {
  const auto centers = [](const std::string& arguments) {
    const std::string svg = run("show " + arguments + " --svg -").output;
    const std::regex circle(R"re(<circle cx="([0-9.]+)" cy="([0-9.]+)")re");
    std::vector<std::pair<double, double>> found;
    for (std::sregex_iterator it(svg.begin(), svg.end(), circle), end; it != end; ++it) {
      found.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
    }
    return found;
  };
  const auto pairs = centers("alternating_pairs_torus -n 16");
  REQUIRE(pairs.size() == 4 * 16);  // one panel a round
  for (std::size_t i = 0; i < 16; ++i) {
    CHECK(pairs[i].first == pairs[i % 4].first);
    CHECK(pairs[i].second == pairs[i - i % 4].second);
  }
  const auto hosts = centers("hierarchical -n 12");
  REQUIRE(hosts.size() == 12);
  const auto distance = [&](std::size_t a, std::size_t b) {
    return std::hypot(hosts[a].first - hosts[b].first, hosts[a].second - hosts[b].second);
  };
  for (std::size_t a = 0; a < 12; ++a) {
    double farthest_here = 0, nearest_elsewhere = 1e9;
    for (std::size_t b = 0; b < 12; ++b) {
      if (a / 4 == b / 4) farthest_here = std::max(farthest_here, distance(a, b));
      if (a / 4 != b / 4) nearest_elsewhere = std::min(nearest_elsewhere, distance(a, b));
    }
    CHECK(farthest_here > 0);
    CHECK(nearest_elsewhere > farthest_here / 2);
  }
}

TEST_CASE("fastest weights are saved to a file, which keeps their gap") {
  const std::filesystem::path folder = fresh_folder();
  for (const char* ending : {".toml", ".mtx"}) {
    const std::string path = folder / (std::string("fastest") + ending);
    const nlohmann::json made = shown("grid2d --weights fastest -n 9 --save " + path);
    const nlohmann::json loaded = shown(path);
    CHECK(loaded["workers"] == 9);
    CHECK(loaded["gap"].get<double>() == Approx(made["gap"].get<double>()).margin(1e-12));
    CHECK(run("check " + path).status == 0);
  }
  CHECK_THAT(run("show ring --save ring.txt").output, Contains("does not end in .toml or .mtx"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("all files of topology/ pass the check") {
  const Result result = run("check " FAST_SOURCE_DIR "/topology/*");
  INFO(result.output);
  CHECK(result.status == 0);
}

TEST_CASE("a topology that is not connected does not pass the check") {
  const std::filesystem::path folder = fresh_folder();
  const auto status_of = [&](const char* text) {
    const std::string path = folder / "parts.toml";
    std::ofstream(path) << text;
    return run("check " + path).status;
  };
  CHECK(status_of("edges = [[0, 1], [2, 3]]\n") == 1);
  CHECK(status_of("edges = [[0, 1], [1, 2], [2, 3]]\n") == 0);
  CHECK(status_of("directed = true\nedges = [[0, 1], [1, 2]]\n") == 1);
  CHECK(status_of("directed = true\nedges = [[0, 1], [1, 2], [2, 0]]\n") == 0);
  CHECK(status_of("[[round]]\nedges = [[0, 1]]\n[[round]]\nedges = [[1, 2]]\n") == 0);
  CHECK(status_of("[[round]]\nedges = [[0, 1], [2, 3]]\n[[round]]\nedges = [[0, 1]]\n") == 1);
  CHECK_THAT(run("check " + (folder / "parts.toml").string()).output,
             Contains("not connected") && Contains("never reach worker 2; add an edge"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("a number of workers that is no number is refused with what is required") {
  const std::string required =
      "; a whole number, at least 1, is required; --help lists the options";
  CHECK_THAT(run("show ring -n 0").output, Contains("--workers: 0" + required));
  CHECK_THAT(run("show ring -n x").output, Contains("--workers: \"x\"" + required));
}

TEST_CASE("a command line that is not complete or has too much is refused in plain words") {
  CHECK(run("").output ==
        "fast-topology: a subcommand is required; choose list, show, compare, check or plan\n");
  CHECK(run("show ring -n").output ==
        "fast-topology: --workers: a value is missing; --help lists the options\n");
  CHECK(run("show ring --parameters 1e6x").output ==
        "fast-topology: --parameters: \"1e6x\"; a number is required; --help lists the options\n");
  CHECK(run("plan --rows -3").output ==
        "fast-topology: --rows: \"-3\"; a whole number, 0 or more, is required; --help lists the "
        "options\n");
  CHECK(run("list more").output ==
        "fast-topology: the argument \"more\" is not expected; --help lists the arguments\n");
  for (const char* arguments : {"", "show", "show ring -n", "list more"})
    CHECK(run(arguments).status == 2);
  CHECK(run("show").output == "fast-topology: give a name or a file; --help lists the options\n");
}

TEST_CASE("check says whether an algorithm can run with a file's weights, and what would mend it") {
  const std::string torus = " " FAST_SOURCE_DIR "/topology/torus2d.toml";
  const Result d2 = run("check -n 16 --algorithm d2" + torus);
  CHECK(d2.status == 1);
  CHECK_THAT(d2.output, Contains("smallest eigenvalue of its weights is -0.6") &&
                            Contains("use lazy weights"));
  CHECK(run("check -n 16 --lazy --algorithm d2" + torus).status == 0);
  CHECK(run("check -n 16 --algorithm awc" + torus).status == 0);
  CHECK(run("check -n 16 --algorithm push_sum" + torus).status == 0);
  CHECK_THAT(run("check -n 16 --algorithm pairwise" + torus).output,
             Contains("choose alternating_pairs"));
  CHECK_THAT(run("check --algorithm d3" + torus).output, Contains("d3"));
}

// Columns of sites sum to 1 on average over rounds, which is enough for rules that average weights
// alone, and for rules of sites.
TEST_CASE("check accepts sites for the rules that run on them") {
  const std::filesystem::path folder = fresh_folder();
  const std::string sites = " " + (folder / "sites.toml").string();
  std::ofstream(folder / "sites.toml") << "schedule = \"sites\"\nevery = 4\nworkers_per_site = 4\n";
  for (const char* rule : {"awc", "atc", "awc_gasloc"}) {
    INFO(rule);
    CHECK(run(std::string("check -n 8 --algorithm ") + rule + sites).status == 0);
  }
  const Result sums = run("check -n 8 --algorithm quasi_global_momentum" + sites);
  CHECK(sums.status == 1);
  CHECK_THAT(sums.output, Contains("(its column)"));
  const std::string torus = " " FAST_SOURCE_DIR "/topology/torus2d.toml";
  const Result elsewhere = run("check -n 16 --algorithm awc_gasloc" + torus);
  CHECK(elsewhere.status == 1);
  CHECK_THAT(elsewhere.output, Contains("needs rounds within sites and rounds between them"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("mutated files are accepted or refused with line or key, and nothing crashes") {
  const std::uint64_t seed = test_seed(71);
  INFO("FAST_TEST_SEED=" << seed);
  fast::Rng rng(seed);
  const std::vector<std::string> texts = topology_files(FAST_SOURCE_DIR "/topology");
  REQUIRE(texts.size() >= 10);
  const std::filesystem::path folder = fresh_folder();
  const std::regex located(R"(refused: .*(\.toml:\d+|key "|line \d+|keys))");
  int lines = 0, refused = 0;
  for (int batch = 0; batch < 10; ++batch) {
    std::string paths;
    for (int k = 0; k < 100; ++k) {
      const std::string path = folder / fmt::format("m{}-{}.toml", batch, k);
      std::ofstream(path) << mutated(texts[rng.below(texts.size())], rng);
      paths += " " + path;
    }
    const Result result = run("check" + paths);
    REQUIRE(result.status <= 1);
    std::istringstream stream(result.output);
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with(folder.string())) ++lines;
      if (line.find(": refused: ") == std::string::npos) continue;
      ++refused;
      INFO(line);
      CHECK(std::regex_search(line, located));
    }
  }
  CHECK(lines == 1000);
  CHECK(refused > 200);
  std::filesystem::remove_all(folder);
}
