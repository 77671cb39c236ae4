// What fastrun says of ranks that failed.
#pragma once

#include <optional>
#include <string>

#include "ranks.hpp"

namespace fastrun {

/// "PROGRAM cannot be started on host1, host2 (No such file or directory)": each host once, in the
/// order of ranks, hosts of the same reason together. Empty: all ranks could start it.
std::string missing_program(const std::string& program, const Ranks& ranks);

/// "rank 3 (process 17 on host1) ended with status 1 and printed no error". Empty if `first_failed`
/// is none or has printed something, or if any rank that failed has printed an error.
std::string silent_failure(const Ranks& ranks, std::optional<int> first_failed);

/// "rank 1 ended with status 0 before training began; ranks 0, 2 may wait for it". Empty: training
/// has begun, or no rank runs any more, or none has ended by itself.
std::string early_ends(const Ranks& ranks);

/// No rank ended well, and the first that failed ended with 2: its options are wrong.
bool is_wrong_usage(const Ranks& ranks, std::optional<int> first_failed);

/// The exit status where a line that is printed already says all: no rank could start the program,
/// or it has refused its command line on all ranks. Empty: there is more to say.
std::optional<int> status_that_is_told(const Ranks& ranks, std::optional<int> first_failed);

}  // namespace fastrun
