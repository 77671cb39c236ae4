// An observer that writes event files for TensorBoard.
#pragma once

#include <fast/core/observer.hpp>

#include <filesystem>
#include <memory>

namespace fast::observe {

/// Writes scalars, histograms of values and, once an epoch, the histogram of ages of what was read
/// and the seconds of each phase. The step of all of them is the round. One event file in
/// `directory`, which is made if needed; TensorBoard shows each directory as a run of its own.
/// Lines are written at once. Throws Error(resource) when the file cannot be made. When it cannot
/// be written later (disk full), warns through `log` once and writes no more.
std::shared_ptr<Observer> tensorboard(const std::filesystem::path& directory, LogSink log = {});

}  // namespace fast::observe
