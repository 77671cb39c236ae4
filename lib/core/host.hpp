// How much memory and how many threads this host can still give to this process.
#pragma once

#include <cstddef>
#include <string>

namespace fast {

/// Returns the bytes that all processes of the host together can still allocate without swapping.
/// Page cache counts as free. The result is the largest number where the system does not say.
std::size_t available_host_memory_bytes();

/// Returns the bytes that this process can still allocate. This is the least of the number above,
/// of what its control groups (v1 or v2) leave, and of its limit of addresses (ulimit -v).
std::size_t available_memory_bytes();

/// What this process holds in memory; 0 where that is not known.
std::size_t resident_memory_bytes();

/// Returns the number of threads that this process can have. This is the least that the kernel, the
/// user's limit, the control group and the kernel's limit of mappings (two for a stack) allow.
std::size_t most_threads();

/// The name of this machine or container.
std::string host_name();

/// "1.5 GiB", "812 MiB", "640 bytes".
std::string size_text(double size_bytes);

}  // namespace fast
