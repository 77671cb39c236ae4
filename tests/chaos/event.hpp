// What happens to a run.
#pragma once

#include <string>
#include <vector>

namespace chaos {

enum class Kind {
  kill,    ///< SIGKILL in the middle of rounds
  start,   ///< SIGKILL before workers have met
  end,     ///< SIGKILL in evaluation
  stop,    ///< SIGSTOP, and SIGCONT after `length_s`
  slow,    ///< steps take four times as long, for `length_s`
  cut,     ///< links carry nothing for `length_s`
  delay,   ///< links delay frames by `amount` ms, with a deviation of half of it
  rate,    ///< links carry `amount` Mbit/s
  loss,    ///< links lose `amount` % of the frames
  clock,   ///< the wall clock jumps by `amount` s, and back after `length_s`
  memory,  ///< the process gets no more memory
  disk,    ///< the disk of the checkpoints is full, for `length_s`; fast-train
  save,    ///< SIGTERM while checkpoints are being written; fast-train
  host,    ///< all processes of a host at once, and its link
};

struct Event {
  Kind kind = Kind::kill;
  std::vector<int> victims;  ///< ranks; of links the two hosts from 1 on, none: all links; a host
  int round = 0;             ///< in which it happens
  int delay_us = 0;          ///< after that round's beginning: in computing, mixing or publishing
  double length_s = 0;
  double amount = 0;

  friend bool operator==(const Event&, const Event&) = default;
};

/// Of links between hosts.
bool is_of_links(Kind kind);
/// Whether it is an event of fast-train only.
bool is_of_training(Kind kind);

std::string name(Kind kind);
/// Throws std::invalid_argument that lists the names.
Kind kind_named(const std::string& name);
std::vector<Kind> all_kinds();

/// kill:2,3@35+1200/1.4*50: victims, round, delay_us, length_s, amount. event_from() reads it back
/// and throws std::invalid_argument.
std::string write(const Event& event);
Event event_from(const std::string& text);

}  // namespace chaos
