// How well a model does its task, as sums that add up over batches and workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fast {

/// A measure of the samples seen so far. Measures of the same name and form add up: the sums of two
/// batches give the measure of both.
struct Measure {
  enum class Form : std::uint8_t {
    share,         ///< sums {hits, all}: hits / all, a number from 0 to 1
    mean,          ///< sums {sum, count}: sum / count
    root_of_mean,  ///< the square root of that
    exp_of_mean,   ///< e to the power of that
    /// The area under the ROC curve: the probability that a sample of class 1 has a larger score
    /// than one of class 0. Equal scores count as half. The sums are numbers of samples by score,
    /// of class 0 and then of class 1; see score_bin().
    area,
  };
  std::string name;  ///< "accuracy", "mae"
  Form form = Form::mean;
  std::vector<double> sums;

  /// NaN without samples, and for an area with samples of one class only.
  double value() const;
  bool more_is_better() const { return form == Form::share || form == Form::area; }
  /// Throws Error(mismatch) for another name or form.
  void add(const Measure& other);
};

/// An area has bins of scores of width 1/64 from -32 to 32; the first and the last have all others.
/// Scores in one bin count as equal.
inline constexpr std::size_t score_bins = 4096;
std::size_t score_bin(double score);

/// A measure of no samples.
Measure empty_area(std::string_view name);

/// Adds each measure to the one of the same name. A measure that `to` lacks becomes its last one.
/// Throws Error(mismatch) for two forms of one name.
void add(std::vector<Measure>& to, const std::vector<Measure>& from);

/// Throws Error(argument) unless each name consists of letters, digits and _, differs from the
/// others and is neither "loss" nor "samples". Each measure must have the sums of its form.
void require_valid(const std::vector<Measure>& measures);

/// Names and values.
std::vector<std::pair<std::string, double>> values_of(const std::vector<Measure>& measures);

/// "88.43 %" for shares, "0.1234" for others.
std::string measure_text(Measure::Form form, double value);

}  // namespace fast
