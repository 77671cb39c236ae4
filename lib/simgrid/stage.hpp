// Where simulated workers act: a clock, and messages between workers.
#pragma once

#include <functional>

namespace fast::simgrid {

class Stage {
 public:
  using Event = std::function<void()>;
  virtual ~Stage() = default;
  virtual double now() const = 0;
  virtual void after(double seconds, Event event) = 0;
  /// `arrived` happens when the whole message has arrived.
  virtual void send(int from, int to, double size_bytes, Event arrived) = 0;
  /// Once, when the last worker has finished.
  virtual void finish() = 0;
};

}  // namespace fast::simgrid
