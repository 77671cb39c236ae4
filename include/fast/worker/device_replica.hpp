// A model on a device with a mirror in host memory, of which the device's copy can be averaged.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <memory>
#include <vector>

namespace fast {

class Accelerator;

/// What a Backend is besides, whose parameters() are a mirror of the device's memory. Between
/// accelerate() and keep_mirror() the device's weights are those that count.
class DeviceReplica {
 public:
  virtual ~DeviceReplica() = default;
  /// From now on the mirror is kept by download() and upload() alone. It is called for a Worker on
  /// device_parameters(), as often as one is made.
  virtual std::shared_ptr<Accelerator> accelerate() = 0;
  /// Those of Backend::parameters(), on the device.
  virtual std::vector<TensorView> device_parameters() = 0;
  virtual void download() = 0;  ///< the device's weights to the mirror
  virtual void upload() = 0;    ///< the mirror's to the device
  /// Brings the mirror up to date and keeps it so.
  virtual void keep_mirror() = 0;
};

}  // namespace fast
