// Options that change nothing in some runs: given there, they are refused.
#include <algorithm>
#include <fast/core/error.hpp>
#include <string_view>

#include "fast_train/options.hpp"
#include "fast_train/settings.hpp"

namespace fast_train {

using namespace fast;

namespace {

struct Need {
  const char* option;
  bool (*met)(const Options& o);
  const char* why;  ///< what the run is, what the option needs, what to do
};

bool on_gpu(const Options& o) { return o.device != "cpu"; }
bool on_cpu(const Options& o) { return o.device == "cpu"; }
bool is_sgd(const Options& o) { return o.optimizer == "sgd"; }
bool is_adam(const Options& o) { return o.optimizer != "sgd"; }
bool has_neighbors(const Options& o) { return !is_all_reduce(o) && o.algorithm != "none"; }
bool other_hosts(const Options& o) { return o.exchange != "local" && o.exchange != "shared"; }
bool reaches_other_hosts(const Options& o) { return has_neighbors(o) && other_hosts(o); }
bool is_local(const Options& o) { return o.exchange == "local"; }
bool is_skewed(const Options& o) { return o.shards != "even"; }
bool saves(const Options& o) { return !o.checkpoint_every.empty() || !o.checkpoints.empty(); }
bool has_rule(const Options& o) { return o.exchange != "allreduce" || o.algorithm == "allreduce"; }

constexpr char gpu_only[] =
    "the CPU has no such choice, this worker computes on it; leave the option out or take "
    "--device cuda";
constexpr char no_neighbors[] =
    "an all-reduce, as --algorithm none, reads no neighbors; leave the option out or take a rule "
    "that averages with neighbors (--algorithm awc)";
constexpr char one_host[] =
    "it is about messages to neighbors on other hosts, and with --exchange local or shared, an "
    "all-reduce or --algorithm none there are none; leave it out or take --exchange hybrid";
constexpr char sgd_only[] =
    "it is an option of sgd; leave it out (--beta1 is the momentum of adam and adamw) or take "
    "--optimizer sgd";
constexpr char adam_only[] =
    "it is an option of adam and adamw; leave it out (--momentum is sgd's) or take one of these";

// clang-format off
constexpr Need needs[] = {
    {"--precision", on_gpu, gpu_only},
    {"--autotune", on_gpu, gpu_only},
    {"--cuda-graph", on_gpu, gpu_only},
    {"--deterministic", on_gpu,
     "runs on the CPU are deterministic anyway; leave the option out or take --device cuda"},
    {"--autotune", [](const Options& o) { return !o.deterministic; },
     "with --deterministic no way to a convolution is chosen by the clock; leave one of the two out"},
    {"--threads", on_cpu,
     "it is a number of cores, and this worker computes on a GPU; leave it out (--loader-threads "
     "make its batches) or take --device cpu"},
    {"--topology", has_neighbors, no_neighbors},
    {"--staleness", has_neighbors, no_neighbors},
    {"--closing-rounds",
     [](const Options& o) { return has_neighbors(o) || o.closing_rounds == "0"; }, no_neighbors},
    {"--rejoin-after", has_neighbors, no_neighbors},
    {"--codec", [](const Options& o) { return has_neighbors(o) || o.codec == "identity"; },
     "an all-reduce averages exactly, and --algorithm none sends no messages; leave the codec out or "
     "take a rule that averages with neighbors (--algorithm awc)"},
    {"--no-placement", reaches_other_hosts, one_host},
    {"--remote-path", reaches_other_hosts, one_host},
    {"--remote-rate", reaches_other_hosts, one_host},
    {"--algorithm", has_rule,
     "--exchange allreduce averages gradients over all workers and has no rule for weights; leave "
     "one of the two out"},
    {"--algorithm-option", [](const Options& o) { return !is_all_reduce(o); },
     "an all-reduce of gradients has no options; leave it out or take a rule that has some"},
    {"--take-over", is_skewed,
     "with even shards all samples are dealt anew every epoch, so that nothing is to be taken "
     "over; leave it out or take --shards dirichlet:ALPHA"},
    {"--take-over", [](const Options& o) { return !is_all_reduce(o); },
     "an all-reduce cannot go on without a worker, so that nobody's samples are left; leave it out or "
     "take another rule"},
    {"--momentum", is_sgd, sgd_only},
    {"--nesterov", is_sgd, sgd_only},
    {"--beta1", is_adam, adam_only},
    {"--beta2", is_adam, adam_only},
    {"--evaluate-every", [](const Options& o) { return !o.out.empty(); },
     "its lines of metrics need a directory; add --out DIRECTORY"},
    {"--keep", saves,
     "this run writes no checkpoints; add --checkpoint-every or --checkpoints, or leave it out"},
    {"--strict", [](const Options& o) { return !o.resume.empty(); },
     "it is about the checkpoint that a run resumes from; add --resume or leave it out"},
    {"--workers", is_local,
     "threads are workers with --exchange local only; add that, or start as many ranks with "
     "mpiexec -n"},
};
// clang-format on

}  // namespace

bool was_given(const Options& o, std::string_view option) {
  return std::find(o.given.begin(), o.given.end(), option) != o.given.end();
}

void check_needs(const Options& o) {
  for (const Need& need : needs) {
    require(need.met(o) || !was_given(o, need.option), ErrorKind::argument,
            "{}: without effect in this run: {}", need.option, need.why);
  }
}

}  // namespace fast_train
