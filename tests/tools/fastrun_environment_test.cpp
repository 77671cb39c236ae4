#include "fastrun/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "fastrun/cores.hpp"
#include "support/catch.hpp"

using namespace fastrun;

namespace {

/// What a rank reads; "-": nothing.
std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "-" : value;
}

/// OMP_NUM_THREADS, OPENBLAS_NUM_THREADS and MKL_NUM_THREADS of the ranks.
std::string threads_of(const Options& options, const char* set_by_user) {
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
    unsetenv(name);
  if (set_by_user != nullptr) setenv("OMP_NUM_THREADS", set_by_user, 1);
  set_environment(options, {4000, "token"});
  return value_of("OMP_NUM_THREADS") + " " + value_of("OPENBLAS_NUM_THREADS") + " " +
         value_of("MKL_NUM_THREADS");
}

}  // namespace

TEST_CASE("the user's number of threads holds, unless --threads gives another one") {
  Options options;
  CHECK(threads_of(options, "7") == "7 - -");
  options.threads = 3;
  CHECK(threads_of(options, "7") == "3 3 3");
  CHECK(threads_of(options, nullptr) == "3 3 3");
}

TEST_CASE("the ranks of a host share its cores") {
  Options options;
  const std::string all = std::to_string(usable_cores());
  CHECK(threads_of(options, nullptr) == all + " " + all + " " + all);
  options.ranks = usable_cores() + 1;
  CHECK(threads_of(options, nullptr) == "1 1 1");
}
