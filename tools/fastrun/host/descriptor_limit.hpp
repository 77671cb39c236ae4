// How many descriptors a process may have.
#pragma once

#include <sys/resource.h>

namespace fastrun {

/// Raised as far as it goes while fastrun lives: each rank needs two connections. The processes
/// that it starts restore it, because some programs go through all descriptors up to the limit.
class DescriptorLimit {
 public:
  DescriptorLimit();
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  void restore() const;
  /// That this process may have now.
  rlim_t most() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

}  // namespace fastrun
