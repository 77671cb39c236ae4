// One copy of the data set on each host, for all of its processes.
#pragma once

#include <fast/data/load.hpp>
#include <fast/exchange/group.hpp>

#include <functional>
#include <string_view>

namespace fast::train {

/// Collective. `source` says what is loaded (a path, a limit). On each host one worker of each
/// source calls `load`; the others of that host and source map its memory, which is sealed against
/// changes. Streamed samples have no memory to map: each worker calls `load` itself. A worker that
/// cannot map the memory (its process is in another namespace) calls `load` itself. Throws as
/// `load` and agree() do, on every worker.
data::Splits load_once_a_host(const Group& group, std::string_view source, const Deadline& deadline,
                              const std::function<data::Splits()>& load);

}  // namespace fast::train
