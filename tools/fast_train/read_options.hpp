// fast-train's options from the command line and the configuration file.
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/nn/optimizer.hpp>

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/program.hpp"
#include "fast_train/options.hpp"

namespace fast_train {

// The documentation's table of averaging rules, from their traits.

/// Markdown between the lines "<!-- rules -->" and "<!-- end -->".
std::string rules_markdown();

// What stands for options that are not set. All throw fast::Error (argument) for options that do
// not fit each other.

fast::nn::OptimizerSpec optimizer_of(const Options& o);
/// Of sgd; empty for other optimizers.
std::optional<double> momentum_of(const Options& o);
double learning_rate_of(const Options& o);
/// "sgd, momentum 0.9, weight decay 0.0001".
std::string optimizer_text(const Options& o);
/// Batches made ahead.
int prefetch_of(const Options& o);

/// The same options, with the values of this run where none were set.
Options resolved(Options o);

// The directory of a run that has a name: runs/NAME.

/// Where runs with a name are.
inline const std::filesystem::path parent_of_runs = "runs";

/// "2026-11-22-180312-lenet-torus2d-4": time, model, topology and workers.
std::string automatic_name(const Options& o, int workers, std::time_t now);

/// Makes the directory `parent`/`name`, or with -2, -3 and so on behind it when there is one
/// already, and returns it. Throws fast::Error (resource) when it cannot be made.
std::filesystem::path make_new_directory(const std::filesystem::path& parent,
                                         const std::string& name);

/// Collective. With --run-name, sets the directory for the run's output: rank 0 chooses it, makes
/// it for the name auto, and prints it. Throws fast::Error on every rank.
void name_run(const fast::Group& ranks, Options& o);

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
