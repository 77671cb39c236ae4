#include "process_manager.hpp"

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <iterator>

#include "mpi/implementation.hpp"

extern char** environ;  // NOLINT: POSIX

namespace fastrun {
namespace {

using Words = std::vector<std::string>;

void add(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

Words words_of_hydra(const Options& options) {
  Words words{"-disable-auto-cleanup", "-n", std::to_string(all_ranks(options))};
  if (!options.hosts.empty()) add(words, {"-hosts", options.hosts});
  if (options.ranks_per_host > 0) add(words, {"-ppn", std::to_string(options.ranks_per_host)});
  return words;
}

/// Open MPI counts cores as slots, and binds ranks to cores: fastrun does neither.
const Words of_open_mpi{"--oversubscribe", "--bind-to", "none"};

/// "a,b:2" with 4 ranks on each host: "a:4,b:4".
std::string slots(const std::string& hosts, int ranks_per_host) {
  if (ranks_per_host == 0) return hosts;
  std::string all;
  std::size_t begin = 0;
  while (begin <= hosts.size()) {
    const std::size_t end = std::min(hosts.find(',', begin), hosts.size());
    const std::string host = hosts.substr(begin, end - begin);
    all += fmt::format("{}{}:{}", all.empty() ? "" : ",", host.substr(0, host.find(':')),
                       ranks_per_host);
    begin = end + 1;
  }
  return all;
}

/// hydra passes all variables on to other hosts; Open MPI those that it is told of.
Words exported_variables() {
  constexpr const char* prefixes[] = {
      "FAST", "OMP_", "OPENBLAS_", "MKL_", "UCX_", "LD_LIBRARY_PATH", "PATH=", "PYTHONPATH="};
  Words words;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool is_wanted =
        std::any_of(std::begin(prefixes), std::end(prefixes), [&](const char* prefix) {
          return std::strncmp(*variable, prefix, std::strlen(prefix)) == 0;
        });
    const std::string_view text(*variable);
    if (is_wanted) add(words, {"-x", std::string(text.substr(0, text.find('=')))});
  }
  return words;
}

Words words_of_open_mpi(const Options& options) {
  Words words{"--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0"};
  add(words, of_open_mpi);
  add(words, {"-n", std::to_string(all_ranks(options))});
  if (!options.hosts.empty()) {
    add(words, {"--host", slots(options.hosts, options.ranks_per_host)});
    if (options.ranks_per_host == 0) add(words, {"--map-by", "node"});
  }
  if (options.ranks_per_host > 0)
    add(words, {"--map-by", fmt::format("ppr:{}:node", options.ranks_per_host)});
  if (!options.hosts.empty()) add(words, exported_variables());
  return words;
}

const ProcessManager known[] = {
    {"MPICH", "MPICH's hydra", "HYDRA", "mpich", "mpiexec.mpich", "pmi2", {}, words_of_hydra},
    {"Open MPI", "Open MPI's", "Open MPI", "openmpi-bin", "mpiexec.openmpi", "pmix", of_open_mpi,
     words_of_open_mpi},
};

template <class Condition>
const ProcessManager* find(const Condition& condition) {
  const auto* found = std::find_if(std::begin(known), std::end(known), condition);
  return found == std::end(known) ? nullptr : found;
}

}  // namespace

const ProcessManager& own_process_manager() {
  return *find(
      [](const ProcessManager& one) { return one.mpi == fast::mpi::implementation::name(); });
}

const ProcessManager* process_manager_that_says(std::string_view version) {
  const auto says = [&](const char* text) { return version.find(text) != std::string_view::npos; };
  return find([&](const ProcessManager& one) {
    return says(one.announces) || (one.mpi == std::string_view("Open MPI") && says("OpenRTE"));
  });
}

}  // namespace fastrun
