// What the subcommands status, wait and fetch do. Each throws fast::Error.
#pragma once

#include <cstdint>
#include <string>

namespace fast_sites {

/// The run, and what lets this program in.
struct Access {
  std::string url, credentials_file, ca_file;
};

struct StatusOptions {
  bool json = false;
};
struct WaitOptions {
  int sites = 1;
  std::int64_t round = 0;
  double timeout_s = 600;
};
struct FetchOptions {
  std::string out, site;
  double timeout_s = 600;
};

/// Prints the sites that are there.
void status(const Access& access, const StatusOptions& options);
/// Returns when enough sites take part.
void wait(const Access& access, const WaitOptions& options);
/// Writes the model of a site.
void fetch(const Access& access, const FetchOptions& options);

}  // namespace fast_sites
