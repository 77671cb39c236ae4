// How much memory and how many threads this host can still give to this process.
#pragma once

#include <cstddef>
#include <string>

namespace fast {

/// Bytes that all processes of the host together can still allocate without swapping, page cache
/// counted as free; the largest number where that is not known.
std::size_t available_host_memory_bytes();

/// Bytes that this process can still allocate: the least of those, of what its control groups (v1
/// or v2) leave, and of its limit of addresses (ulimit -v).
std::size_t available_memory_bytes();

/// What this process holds in memory; 0 where that is not known.
std::size_t resident_memory_bytes();

/// Threads that this process can have: the least of what the kernel, the user's limit, the control
/// group and the kernel's limit of mappings (two for a stack) allow.
std::size_t most_threads();

/// Of this machine or container.
std::string host_name();

/// "1.5 GiB", "812 MiB", "640 bytes".
std::string size_text(double size_bytes);

}  // namespace fast
