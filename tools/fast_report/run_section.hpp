// The part of a page about one run.
#pragma once

#include <string>

#include "fast_report/html.hpp"
#include "fast_report/run.hpp"

namespace fast_report {

/// Findings, faults and facts.
std::string overview_of(const Run& run);
/// Loss, accuracy, learning rate, speed.
std::string learning_of(const Run& run, Figures& figures);
/// The consensus distance, or why it is left out.
std::string consensus_of(const Run& run, Figures& figures);
/// The topology, and who was waited for.
std::string workers_of(const Run& run, Figures& figures);
/// Phases, waiting over time, events.
std::string time_of(const Run& run, Figures& figures);
/// The options, folded.
std::string options_of(const Run& run);

/// All of them, in this order.
std::string section_of(const Run& run, Figures& figures);

}  // namespace fast_report
