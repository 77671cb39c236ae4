// How much memory and how many threads this host can still give to this process.
#pragma once

#include <cstddef>
#include <string>

namespace fast {

/// Bytes that can be allocated without swapping: the smaller of the system's and of what the
/// process's control groups (v1 or v2) leave, page cache counted as free. The largest number where
/// neither is known.
std::size_t available_memory_bytes();

/// What this process holds in memory; 0 where that is not known.
std::size_t resident_memory_bytes();

/// Threads that this process can have: the least of what the kernel, the user's limit, the control
/// group and the kernel's limit of mappings (two for a stack) allow.
std::size_t most_threads();

/// "1.5 GiB", "812 MiB", "640 bytes".
std::string size_text(double size_bytes);

}  // namespace fast
