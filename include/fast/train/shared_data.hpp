// One copy of the data set a host, however many of its processes train on it.
#pragma once

#include <fast/data/load.hpp>
#include <fast/exchange/group.hpp>

#include <functional>
#include <string_view>

namespace fast::train {

/// Collective. What `load` returns, which is called by one worker a host and source: `source` says
/// what is loaded (a path, a limit). The others of the same host and source map that worker's
/// memory, which nothing can change any more. A worker that cannot map it, as its processes lie in
/// other namespaces, calls `load` itself. Throws as `load` does and as agree(), on every worker.
data::Splits load_once_a_host(const Group& group, std::string_view source, const Deadline& deadline,
                              const std::function<data::Splits()>& load);

}  // namespace fast::train
