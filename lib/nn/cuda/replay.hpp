// Work that is enqueued many times. The first time it runs plainly, because libraries initialize
// themselves. The second time it is captured. From then on the captured work is launched.
#pragma once

#include <cstdint>
#include <optional>

namespace fast::cuda {

template <class Captured, class Version = std::uint64_t>
class Replay {
 public:
  /// A new `version` starts again with a plain run: it changes with the work, and when memory that
  /// the work refers to may have moved. If plain() or capture() throws, nothing changes.
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
