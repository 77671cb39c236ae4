// Whether other runs write to a directory now.
#pragma once

#include <fast/core/deadline.hpp>

#include <filesystem>

namespace fast::train {

/// The mark of a worker on a directory to which it writes. The system removes it when the process
/// ends, also if it is killed. On file systems whose marks could outlive a lost host (NFS and
/// others of several hosts), there is none.
class DirectoryLock {
 public:
  /// Makes the directory if it is missing. What fails is for whoever writes there to tell.
  explicit DirectoryLock(std::filesystem::path directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// Of a run's first worker before the others have marks. Waits for workers of an earlier run that
  /// are about to end. Throws Error(argument) if there are marks of other workers after that.
  void require_alone(Seconds patience = Seconds(5)) const;

 private:
  std::filesystem::path directory_;
  int descriptor_ = -1;  ///< -1: there is no mark
};

}  // namespace fast::train
