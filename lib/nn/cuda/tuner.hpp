// The fastest way to compute each work: known from an earlier run, or measured within a time limit.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/observer.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/cuda/tuning.hpp"
#include "nn/cuda/tuning_file.hpp"

namespace fast::cuda {

/// The ways that a library proposes to compute a work, best first.
template <class Way>
struct Ways {
  std::size_t count;
  /// The same in every run with the same version of the library. Empty: it has no name.
  std::function<std::string(std::size_t i)> name;
  /// No value if the device does not support it.
  std::function<std::optional<Way>(std::size_t i)> make;
  /// Milliseconds. No value if it fails, or is clearly slower than `least`.
  std::function<std::optional<double>(Way& way, std::optional<double> least)> measure;
};

/// The first way that can be made.
template <class Way>
std::optional<Way> first_of(const Ways<Way>& ways) {
  for (std::size_t i = 0; i < ways.count; ++i)
    if (std::optional<Way> way = ways.make(i)) return way;
  return std::nullopt;
}

/// Chooses ways for the works of one network. A work that the file knows is not measured. Of any
/// other, the first few ways are made and measured, until the time for the network is used up. From
/// then on the first way is taken, or the fastest of those already measured, and a later run
/// measures the work.
class Tuner {
 public:
  static constexpr Seconds most_time{10};
  using Now = std::function<Clock::time_point()>;
  Tuner(
      TuningFile file, LogSink log, Now now = [] { return Clock::now(); });

  /// Time is used from begin() to end(), and nothing is measured at other times. end() writes the
  /// file and tells the log what was chosen since begin(). That is information if something was
  /// measured or should have been, else it is for debugging.
  void begin();
  void end();

  /// No value if no way can be made. `work` is a name without tabs and ends of lines. Equal works
  /// are measured once.
  template <class Way>
  std::optional<Way> choose(const std::string& work, const Ways<Way>& ways) {
    if (std::optional<Way> way = known(work, ways)) return way;
    std::vector<std::pair<std::size_t, Way>> made;
    bool all = true, any = false;
    const auto goes_on = [&] { return all = all && has_time(); };
    for (std::size_t i = 0; i < ways.count && made.size() < most_tuned; ++i) {
      if (!made.empty() && !goes_on()) break;
      if (std::optional<Way> way = ways.make(i)) made.emplace_back(i, std::move(*way));
    }
    if (made.empty()) return std::nullopt;
    const auto measure = [&](std::size_t i, std::optional<double> least) -> std::optional<double> {
      if (!goes_on()) return std::nullopt;
      const std::optional<double> time = ways.measure(made[i].second, least);
      any = any || time;
      return time;
    };
    auto& [i, best] = made[fastest(made.size(), measure)];
    settle(work, all && (any || made.size() == 1), ways.name(i));
    return std::move(best);
  }

 private:
  template <class Way>
  std::optional<Way> known(const std::string& work, const Ways<Way>& ways) {
    const std::string* name = file_.find(work);
    for (std::size_t i = 0; name != nullptr && i < ways.count; ++i) {
      if (ways.name(i) != *name) continue;
      std::optional<Way> way = ways.make(i);
      if (way) ++counts_.known;
      return way;
    }
    return std::nullopt;
  }
  bool has_time() const;
  void settle(const std::string& work, bool measured, const std::string& way);

  struct Counts {
    std::size_t measured = 0, known = 0, left = 0;
  };
  TuningFile file_;
  LogSink log_;
  Now now_;
  std::optional<Clock::time_point> began_;
  Clock::duration used_{};  ///< before began_
  Counts counts_;
};

}  // namespace fast::cuda
