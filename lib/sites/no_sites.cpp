// Where the client library of NATS, or OpenSSL, was not found when this was built.
#include <fast/core/error.hpp>
#include <fast/sites/site.hpp>

namespace fast::sites {

std::shared_ptr<SiteExchange> join(const SiteOptions& options) {
  fail(ErrorKind::resource,
       "site {}: this was built without sites; install libnats-dev and libssl-dev, and build again",
       options.name);
}

SiteStats stats_of(const SiteExchange&) { return {}; }

}  // namespace fast::sites
