// What a net of dlib learns of a batch, and what it is measured by.
#pragma once

#include <dlib/dnn.h>
#include <fast/core/batch.hpp>
#include <fast/core/error.hpp>
#include <fast/core/measure.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

namespace fast::dlib {

/// What a net's loss layer learns of one sample.
template <class Net>
using Label = typename Net::training_label_type;

/// Without functions, labels come from the batch by their type:
///
///   unsigned long      the sample's class label (loss_multiclass_log); measured by the accuracy
///   float              its target (loss_mean_squared); measured by mae and rmse
///   matrix<float>      its targets as a column (loss_mean_squared_multioutput); mae and rmse
///   matrix<uint16_t>   a class label for each row and column of the outputs
///                      (loss_multiclass_log_per_pixel), for one label a step; the accuracy
///
/// Other types need `label`. Own measures replace those above.
template <class Net>
struct Task {
  /// The label of one sample. Throws Error(argument) if the sample does not fit.
  std::function<Label<Net>(const Batch& batch, std::size_t sample)> label = {};
  /// Sums over the samples, by the outputs [samples x k x rows x columns] of the net.
  std::function<std::vector<Measure>(const ::dlib::tensor& outputs, const Batch& batch)> measures =
      {};

  /// `outputs`: of an earlier batch, for their shape.
  std::vector<Label<Net>> labels(const Batch& batch, const ::dlib::tensor& outputs) const {
    std::vector<Label<Net>> all;
    for (std::size_t i = 0; i < batch.count(); ++i) {
      all.push_back(label ? label(batch, i) : default_label(batch, i, outputs));
    }
    return all;
  }

  /// Samples whose largest output is their class label's. Nothing for other labels.
  std::optional<std::size_t> correct_in(const ::dlib::tensor& outputs,
                                        const std::vector<Label<Net>>& labels) const {
    if constexpr (is_class) {
      std::size_t correct = 0;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        correct += best_of(outputs, i, 0) == labels[i] ? 1 : 0;
      }
      return correct;
    }
    return std::nullopt;
  }

  std::vector<Measure> measures_of(const ::dlib::tensor& outputs, const Batch& batch,
                                   double loss_sum) const {
    if (measures) return measures(outputs, batch);
    if constexpr (is_class) {
      return {};
    } else if constexpr (is_class_map) {
      return {label_share(outputs, batch)};
    } else {
      if (!label && outputs.size() == batch.targets.size()) return distances(outputs, batch);
      const auto count = static_cast<double>(batch.count());
      return {{"mean_loss", Measure::Form::mean, {loss_sum, count}}};
    }
  }

 private:
  static constexpr bool is_class = std::is_same_v<Label<Net>, unsigned long>;
  static constexpr bool is_number = std::is_same_v<Label<Net>, float>;
  static constexpr bool is_vector = std::is_same_v<Label<Net>, ::dlib::matrix<float>>;
  static constexpr bool is_class_map = std::is_same_v<Label<Net>, ::dlib::matrix<std::uint16_t>>;

  static std::size_t places(const ::dlib::tensor& outputs) {
    return static_cast<std::size_t>(outputs.nr() * outputs.nc());
  }

  /// The class of the largest output at a row and column.
  static std::size_t best_of(const ::dlib::tensor& outputs, std::size_t sample, std::size_t place) {
    const std::size_t classes = static_cast<std::size_t>(outputs.k()), each = places(outputs);
    const float* first = outputs.host() + sample * classes * each + place;
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes; ++c) {
      if (first[c * each] > first[best * each]) best = c;
    }
    return best;
  }

  static unsigned long checked_label(std::int32_t label, const ::dlib::tensor& outputs) {
    require(label >= 0 && label < outputs.k(), ErrorKind::argument,
            "dlib: a label of {}, the net has classes 0..{}", label, outputs.k() - 1);
    return static_cast<unsigned long>(label);
  }

  static void require_targets(const Batch& batch, std::size_t wanted) {
    require(!batch.targets.empty(), ErrorKind::argument,
            "dlib: the batch has class labels, this loss takes float targets; end the net in "
            "loss_multiclass_log");
    require(batch.target_size() == wanted, ErrorKind::argument,
            "dlib: the batch has {} targets a sample, the net {} outputs; as many are required",
            batch.target_size(), wanted);
  }

  static Label<Net> default_label(const Batch& batch, std::size_t sample,
                                  const ::dlib::tensor& outputs) {
    const std::size_t each = batch.target_size();
    if constexpr (is_class) {
      require_class_labels(batch, "dlib");
      return checked_label(batch.labels[sample], outputs);
    } else if constexpr (is_number) {
      require_targets(batch, static_cast<std::size_t>(outputs.k()) * places(outputs));
      return batch.targets[sample];
    } else if constexpr (is_vector) {
      require_targets(batch, static_cast<std::size_t>(outputs.k()) * places(outputs));
      return ::dlib::mat(batch.targets.data() + sample * each, static_cast<long>(each), 1);
    } else if constexpr (is_class_map) {
      return class_map(batch, sample, outputs);
    } else {
      fail(ErrorKind::argument, "dlib: labels of this loss layer are your own; give Task::label");
    }
  }

  static ::dlib::matrix<std::uint16_t> class_map(const Batch& batch, std::size_t sample,
                                                 const ::dlib::tensor& outputs) {
    const std::size_t each = batch.target_size();
    require(batch.targets.empty() && each == places(outputs), ErrorKind::argument,
            "dlib: {} {} a sample, the net has outputs at {} places; a label for each is required",
            each, batch.targets.empty() ? "labels" : "float targets", places(outputs));
    ::dlib::matrix<std::uint16_t> labels(outputs.nr(), outputs.nc());
    for (std::size_t i = 0; i < each; ++i) {
      const auto place = static_cast<long>(i);
      labels(place / outputs.nc(), place % outputs.nc()) =
          static_cast<std::uint16_t>(checked_label(batch.labels[sample * each + i], outputs));
    }
    return labels;
  }

  static Measure label_share(const ::dlib::tensor& outputs, const Batch& batch) {
    const std::size_t each = places(outputs);
    double hits = 0;
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      const auto found = static_cast<std::int32_t>(best_of(outputs, i / each, i % each));
      hits += found == batch.labels[i] ? 1 : 0;
    }
    return {"accuracy", Measure::Form::share, {hits, static_cast<double>(batch.labels.size())}};
  }

  static std::vector<Measure> distances(const ::dlib::tensor& outputs, const Batch& batch) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      const double apart = double{outputs.host()[i]} - double{batch.targets[i]};
      sum += std::fabs(apart);
      squares += apart * apart;
    }
    const auto count = static_cast<double>(batch.targets.size());
    return {{"mae", Measure::Form::mean, {sum, count}},
            {"rmse", Measure::Form::root_of_mean, {squares, count}}};
  }
};

}  // namespace fast::dlib
