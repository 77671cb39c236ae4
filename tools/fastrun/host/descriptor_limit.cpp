#include "descriptor_limit.hpp"

namespace fastrun {

DescriptorLimit::DescriptorLimit() {
  getrlimit(RLIMIT_NOFILE, &before_);
  const rlimit raised{before_.rlim_max, before_.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
}

void DescriptorLimit::restore() const { setrlimit(RLIMIT_NOFILE, &before_); }

}  // namespace fastrun
