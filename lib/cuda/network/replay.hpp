// Work that is enqueued again and again: as it is the first time, when libraries set themselves up,
// then captured, and from there on launched as it was captured.
#pragma once

#include <cstdint>
#include <optional>

namespace fast::cuda {

template <class Captured, class Version = std::uint64_t>
class Replay {
 public:
  /// `version` moves when memory that the work names may have moved, and is another one for other
  /// work: all begins anew then. What plain() or capture() throws leaves things as they were.
  template <class Plain, class Capture, class Launch>
  void run(const Version& version, const Plain& plain, const Capture& capture,
           const Launch& launch) {
    if (version != version_) {
      captured_.reset();
      warm_ = false;
      version_ = version;
    }
    if (!warm_) {
      plain();
      warm_ = true;
      return;
    }
    if (!captured_) captured_.emplace(capture());
    launch(*captured_);
  }

 private:
  Version version_{};
  bool warm_ = false;
  std::optional<Captured> captured_;
};

}  // namespace fast::cuda
