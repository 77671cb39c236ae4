// How the samples of a round are divided among workers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fast::train {

/// The batches of all workers have N × TrainerOptions::batch_size samples together, whatever the
/// division. Steps are scaled in proportion to batches, so that each sample counts alike; see
/// docs/how-to/mixed-machines.md.
struct Balance {
  enum class Kind {
    even,      ///< all batches have the same size
    measured,  ///< in proportion to measured speeds, divided anew when these change
    given,     ///< in proportion to `speeds`
  };
  Kind kind = Kind::even;
  std::vector<double> speeds{};  ///< given: by rank, positive, in any unit

  bool is_even() const { return kind == Kind::even; }
  std::string text() const;  ///< "even", "measured" or "1,2,4"
};

/// Reads such a text. Throws Error(argument) on another one and on speeds that are not positive.
Balance balance_from(std::string_view text);

}  // namespace fast::train
