// What fastrun tells its ranks by environment variables.
#pragma once

#include <string>

#include "fastrun.hpp"

namespace fastrun {

/// Where a launcher listens.
struct ListeningAt {
  int port = 0;
  std::string token;
};

/// All ranks are here, whatever becomes of this machine's addresses.
bool is_on_one_host(const Options& options);

/// Sets the variables of this process, which the ranks inherit: where the launcher is, how many
/// spares there are, how many threads to take, and what fastrun shows.
void set_environment(const Options& options, const ListeningAt& at);

}  // namespace fastrun
