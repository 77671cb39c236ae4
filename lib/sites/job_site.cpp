#include "sites/job_site.hpp"

namespace fast::sites {

std::shared_ptr<SiteExchange> join(const SiteOptions& options) {
  return std::make_shared<JobSite>(
      options, [options](const LogSink& log) { return connect_bus(options, log); });
}

SiteStats stats_of(const SiteExchange& site) {
  const auto* own = dynamic_cast<const JobSite*>(&site);
  require(own != nullptr, ErrorKind::argument, "stats_of: this is no site of sites::join()");
  return own->stats();
}

}  // namespace fast::sites
