// The program of a job, as a file of this host.
#pragma once

#include <string>

namespace fastrun {

/// Why execvp() cannot start a program of this name: "No such file or directory", "Permission
/// denied". Empty: a file is there that may be executed.
std::string why_not_startable(const std::string& program);

}  // namespace fastrun
