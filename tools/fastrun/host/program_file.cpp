#include "program_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/text.hpp"

namespace fastrun {
namespace {

/// An error number; 0: the file may be executed.
int problem_of(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// The same of a name that is in one of `directories`. An empty one is the working directory.
int problem_in(const char* directories, const std::string& name) {
  int problem = ENOENT;
  for (const std::string_view directory : fast::split_text(directories, ':')) {
    const int here = problem_of(std::string(directory.empty() ? "." : directory) + "/" + name);
    if (here == 0) return 0;
    if (here == EACCES) problem = EACCES;
  }
  return problem;
}

}  // namespace

std::string why_not_startable(const std::string& program) {
  const char* directories = std::getenv("PATH");
  const bool is_path = program.find('/') != std::string::npos;
  if (!is_path && directories == nullptr) return {};  // the system has directories of its own
  const int problem = is_path ? problem_of(program) : problem_in(directories, program);
  return problem == 0 ? std::string() : std::strerror(problem);
}

}  // namespace fastrun
