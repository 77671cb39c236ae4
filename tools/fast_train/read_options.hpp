// fast-train's options from the command line and the configuration file.
#pragma once

#include <fast/exchange/group.hpp>
#include <optional>

#include "cli/program.hpp"
#include "fast_train/options.hpp"

namespace fast_train {

/// The options of a command line and of the file that it names; the command line wins. Throws
/// fast::Error (argument) for what is unknown, out of range or without effect.
void read_into(Options& o, int argc, const char* const* argv);

/// What the command line takes, for the help, the manual page and completion.
tools::Program command_line();

/// The options as a configuration file.
std::string config_of(const Options& o);

/// Collective. Nothing when no training was asked for: worker 0 has then printed or written what
/// was. Throws fast::Error (argument) on every worker, for what is unknown or does not fit.
std::optional<Options> read_options(const fast::Group& ranks, int argc, char** argv);

}  // namespace fast_train
