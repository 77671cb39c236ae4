// An observer that writes a timeline for Perfetto (https://ui.perfetto.dev).
#pragma once

#include <fast/core/observer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>

namespace fast::observe {

struct TraceOptions {
  /// The size of the newest events. Older ones are overwritten, half of this at a time.
  std::size_t size_bytes = std::size_t{64} << 20U;
  /// Rounds outside of [first_round, last_round] are left out.
  std::int64_t first_round = 0;
  std::int64_t last_round = std::numeric_limits<std::int64_t>::max();
};

/// Writes the phases of one worker's rounds as slices, its waits for single peers, what it
/// published and read, suspects and returns, epochs and checkpoints, and scalars as counters. A
/// read has the flow of the publication that it read.
///
/// Two files in `directory`, which is made if needed: trace-<worker>.0a.pftrace and .0b.pftrace, or
/// with the next free number. Each can be opened by itself. `fast-trace merge` joins those of all
/// workers. Events reach the system within 0.1 s or 64 KiB, so that they outlive a process that is
/// killed. Times are those of the wall clock at the beginning, and of a clock that never jumps from
/// then on.
///
/// Throws Error(resource) when the files cannot be made. When they cannot be written later (disk
/// full), warns through `log` once and writes no more.
std::shared_ptr<Observer> trace(const std::filesystem::path& directory, int worker,
                                const TraceOptions& options = {}, const LogSink& log = {});

}  // namespace fast::observe
