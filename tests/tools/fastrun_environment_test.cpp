#include "fastrun/starter.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "fastrun/channel.hpp"
#include "fastrun/host.hpp"
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

constexpr const char* of_hosts[] = {"SLURM_JOB_ID", "HYDRA_HOST_FILE", "PBS_NODEFILE",
                                    "LSB_HOSTS",    "LSB_MCPU_HOSTS",  "LSB_DJOB_HOSTFILE",
                                    "PE_HOSTFILE",  "LOADL_HOSTFILE",  "COBALT_NODEFILE"};

/// Where ranks find fastrun.
std::string launcher_of(const Options& options) {
  set_environment(options, {4000, "token"});
  return value_of("FASTRUN_AT");
}

/// Where fastrun listens.
std::uint32_t address_of(const Options& options) {
  const Listener listener = listen_for_ranks(is_on_one_host(options));
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(listener.descriptor.get(), reinterpret_cast<sockaddr*>(&address), &length);
  CHECK(ntohs(address.sin_port) == listener.port);
  return ntohl(address.sin_addr.s_addr);
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

TEST_CASE("a rank has the cores that Slurm has set aside for a task") {
  Options options;
  options.ranks = 2;
  const std::string shared = threads_of(options, nullptr);
  const std::string many = std::to_string(usable_cores() + 3);
  setenv("SLURM_CPUS_PER_TASK", many.c_str(), 1);
  CHECK(threads_of(options, nullptr) == many + " " + many + " " + many);
  CHECK(threads_of(options, "7") == "7 - -");
  setenv("SLURM_NTASKS", "2", 1);
  CHECK(threads_of(options, nullptr) == many + " " + many + " " + many);
  setenv("SLURM_NTASKS", "1", 1);  // both ranks are in one task
  CHECK(threads_of(options, nullptr) == shared);
  unsetenv("SLURM_NTASKS");
  options.hosts = "node1";  // not of the job
  CHECK(threads_of(options, nullptr) == shared);
  unsetenv("SLURM_CPUS_PER_TASK");
}

TEST_CASE("ranks of other hosts get this host's addresses, whoever names the hosts") {
  for (const char* name : of_hosts) unsetenv(name);
  Options options;
  CHECK(launcher_of(options) == "127.0.0.1 4000 token 30");
  const std::string anywhere = own_addresses() + " 4000 token 30";
  for (const char* name : of_hosts) {
    setenv(name, "1", 1);
    INFO(name);
    CHECK(launcher_of(options) == anywhere);
    unsetenv(name);
  }
  options.hosts = "node1,node2";
  CHECK(launcher_of(options) == anywhere);
}

TEST_CASE("other hosts cannot reach a run of this host alone") {
  for (const char* name : of_hosts) unsetenv(name);
  Options options;
  CHECK(address_of(options) == INADDR_LOOPBACK);
  options.hosts = "node1,node2";
  CHECK(address_of(options) == INADDR_ANY);
}
