#include "fastrun/starter.hpp"

#include <algorithm>

#include "mpi/implementation.hpp"
#include "support/catch.hpp"

using namespace fastrun;

namespace {

/// The words after mpiexec, with spaces between them.
std::string words_of(const char* version, const Options& options) {
  std::string all;
  for (const std::string& word : process_manager_that_says(version)->words(options))
    all += word + " ";
  return all;
}

constexpr const char* hydra = "HYDRA build details:\n    Version:  4.0.2";
constexpr const char* open_mpi_4 = "mpiexec (OpenRTE) 4.1.4";

}  // namespace

TEST_CASE("an mpiexec is known by what it prints as its version") {
  CHECK(std::string(process_manager_that_says(hydra)->mpi) == "MPICH");
  CHECK(std::string(process_manager_that_says(open_mpi_4)->mpi) == "Open MPI");
  CHECK(std::string(process_manager_that_says("mpirun (Open MPI) 5.0.3")->mpi) == "Open MPI");
  CHECK(process_manager_that_says("Intel(R) something") == nullptr);
  CHECK(process_manager_that_says("") == nullptr);
}

TEST_CASE("the own process manager is that of the library's MPI") {
  CHECK(own_process_manager().mpi == fast::mpi::implementation::name());
}

TEST_CASE("ranks, hosts and ranks on a host are said in the words of each mpiexec") {
  Options options;
  options.ranks = 3;
  options.spares = 1;
  CHECK(words_of(hydra, options) == "-disable-auto-cleanup -n 4 ");
  CHECK_THAT(words_of(open_mpi_4, options), ContainsSubstring("--enable-recovery "));
  CHECK_THAT(words_of(open_mpi_4, options), ContainsSubstring("orte_abort_on_non_zero_status 0 "));
  CHECK_THAT(words_of(open_mpi_4, options), ContainsSubstring("--bind-to none -n 4 "));
  options.hosts = "a,b:2";
  CHECK(words_of(hydra, options) == "-disable-auto-cleanup -n 4 -hosts a,b:2 ");
  CHECK_THAT(words_of(open_mpi_4, options), ContainsSubstring("--host a,b:2 --map-by node "));
  options.ranks_per_host = 2;
  CHECK(words_of(hydra, options) == "-disable-auto-cleanup -n 4 -hosts a,b:2 -ppn 2 ");
  CHECK_THAT(words_of(open_mpi_4, options),
             ContainsSubstring("--host a:2,b:2 --map-by ppr:2:node "));
}

TEST_CASE("Open MPI is told which variables the other hosts need") {
  setenv("FAST_OF_THIS_TEST", "1", 1);
  setenv("OTHER_OF_THIS_TEST", "1", 1);
  Options options;
  options.hosts = "a";
  const std::string words = words_of(open_mpi_4, options);
  CHECK_THAT(words, ContainsSubstring("-x FAST_OF_THIS_TEST "));
  CHECK(words.find("OTHER_OF_THIS_TEST") == std::string::npos);
  options.hosts = "";
  CHECK(words_of(open_mpi_4, options).find("-x ") == std::string::npos);
}
