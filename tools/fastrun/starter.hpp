// The process that starts the ranks' wrappers: mpiexec or srun.
#pragma once

#include <sys/types.h>

#include <string>

#include "fastrun.hpp"
#include "host/descriptor_limit.hpp"

namespace fastrun {

class Starter {
 public:
  Starter() = default;
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  ~Starter() { end(); }

  /// Starts it in a process group of its own, with as many descriptors as fastrun was given. It
  /// ends with fastrun.
  void start(const Options& options, const DescriptorLimit& descriptors);
  /// "mpiexec", for messages.
  const std::string& name() const { return name_; }
  bool runs() const { return process_ > 0; }
  /// -1: it does not run.
  pid_t process() const { return process_; }
  /// After SIGCHLD: true when it has ended now.
  bool has_ended();
  void kill() const;
  /// Kills it and waits for its end.
  void end();

 private:
  std::string name_;
  pid_t process_ = -1;
};

}  // namespace fastrun
