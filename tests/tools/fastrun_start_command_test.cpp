#include "fastrun/starter.hpp"

#include <algorithm>
#include <cstdlib>

#include "support/catch.hpp"

using namespace fastrun;

namespace {

/// What srun is told of a task's cores, if the batch job has this many for each task.
std::string cores_for_srun(const char* of_job, const Options& options = {}) {
  if (of_job != nullptr) setenv("SLURM_CPUS_PER_TASK", of_job, 1);
  const std::vector<std::string> words = by_srun(options);
  unsetenv("SLURM_CPUS_PER_TASK");
  const auto is_cores = [](const std::string& word) { return word.starts_with("--cpus-per-task"); };
  const auto found = std::find_if(words.begin(), words.end(), is_cores);
  return found == words.end() ? "-" : *found;
}

}  // namespace

TEST_CASE("srun gets the cores of each task that the batch job has") {
  CHECK(cores_for_srun("4") == "--cpus-per-task=4");
  CHECK(cores_for_srun(nullptr) == "-");
  CHECK(cores_for_srun("") == "-");
}
