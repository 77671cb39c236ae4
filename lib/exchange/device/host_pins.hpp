// Host memory that is pinned for copies from and to a device.
#pragma once

#include <fast/core/memory.hpp>
#include <map>
#include <memory>
#include <span>

#include "exchange/device/staged.hpp"

namespace fast::exchange {

/// Pins each slot once: slots do not move. Memory of less than a page is not pinned, because it
/// shares its page with other data.
class HostPins {
 public:
  explicit HostPins(DeviceWork& work) : work_(work) {}

  void pin(std::span<const std::byte> memory) {
    if (memory.size() < page_bytes || pinned_.contains(memory.data())) return;
    pinned_.emplace(memory.data(), work_.pin(memory));
  }

 private:
  DeviceWork& work_;
  std::map<const std::byte*, std::shared_ptr<void>> pinned_;
};

}  // namespace fast::exchange
