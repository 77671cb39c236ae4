// The rows of the options of fast-train, by subject.
#pragma once

#include "fast_train/options.hpp"

namespace fast_train {

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
