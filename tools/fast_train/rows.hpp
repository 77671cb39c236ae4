// The rows of the options of fast-train, by subject.
#pragma once

#include "fast_train/options.hpp"

namespace fast_train {

// Conditions under which options of fast-train have an effect.

inline constexpr char gpu_only[] =
    "the CPU has no such choice, this worker computes on it; leave the option out or take "
    "--device cuda";
inline constexpr char no_neighbors[] =
    "an all-reduce, as --algorithm none, reads no neighbors; leave the option out or take a rule "
    "that averages with neighbors (--algorithm awc)";
inline constexpr char one_host[] =
    "it is about messages to neighbors on other hosts, and with --exchange local or shared, an "
    "all-reduce or --algorithm none there are none; leave it out or take --exchange hybrid";

/// Conditions on the options in `o`, for rows that have an effect in some runs only.
class Conditions {
 public:
  explicit Conditions(const Options& o) : o_(o) {}

  auto on_gpu() const {
    return [&o = o_] { return o.device != "cpu"; };
  }
  auto on_cpu() const {
    return [&o = o_] { return o.device == "cpu"; };
  }
  auto sgd() const {
    return [&o = o_] { return o.optimizer == "sgd"; };
  }
  auto adam() const {
    return [&o = o_] { return o.optimizer != "sgd"; };
  }
  auto no_all_reduce() const {
    return [&o = o_] { return !is_all_reduce(o); };
  }
  auto neighbors() const {
    return [&o = o_] { return has_neighbors(o); };
  }
  auto other_hosts() const {
    return
        [&o = o_] { return has_neighbors(o) && o.exchange != "local" && o.exchange != "shared"; };
  }
  static bool has_neighbors(const Options& o) { return !is_all_reduce(o) && o.rule.name != "none"; }

 private:
  const Options& o_;
};

void add_data_rows(fast::options::OptionTable& table, Options& o);
void add_model_rows(fast::options::OptionTable& table, Options& o);
void add_device_rows(fast::options::OptionTable& table, Options& o);
void add_exchange_rows(fast::options::OptionTable& table, Options& o);
void add_topology_rows(fast::options::OptionTable& table, Options& o);
void add_optimizer_rows(fast::options::OptionTable& table, Options& o);
void add_output_rows(fast::options::OptionTable& table, Options& o);
void add_program_rows(fast::options::OptionTable& table, Requests& requests);

/// What the library's rows need in this program.
void add_needs(fast::options::OptionTable& table, const Options& o);

}  // namespace fast_train
