// The signals that fastrun hears.
#pragma once

#include "channel.hpp"

namespace fastrun {

/// Blocks them, and gives a descriptor to read them from (signalfd). SIGHUP stays ignored where
/// nohup has left it so. SIGPIPE is ignored.
Descriptor signals_to_hear();

}  // namespace fastrun
