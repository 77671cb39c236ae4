#include "fast_model/applied_model.hpp"

#include <fmt/ranges.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <fast/core/error.hpp>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/host.hpp"
#include "core/message.hpp"
#include "data/files/contents.hpp"
#include "data/files/split.hpp"
#include "data/options/rows.hpp"
#include "data/target_scale.hpp"
#include "nn/shape.hpp"
#include "saved_model.hpp"

namespace fast_model {

using namespace fast;

namespace {

constexpr std::size_t most_samples = 256, fewest_samples = 16;  ///< of a batch
constexpr std::size_t batch_values = std::size_t{1} << 20;

void warn(LogLevel, std::string_view text) { fast::say("fast-model: {}\n", printable(text)); }

std::vector<TensorView> tensors_of(nn::Network<float>& network) {
  std::vector<TensorView> views = network.parameter_views();
  for (TensorView& buffer : network.buffer_views()) views.push_back(std::move(buffer));
  return views;
}

}  // namespace

AppliedModel::AppliedModel(const std::string& path) {
  const serve::Weights weights = serve::read_weights(path, warn);
  source_ = weights.source;
  const serve::Note note = serve::note_of(weights);
  require(note.has_value(), ErrorKind::data,
          "{}: it does not say what its samples are, as files of fast-train do; give such a file, "
          "or the directory of a run",
          printable(source_));
  note_ = *note;
  loss_ = {serve::loss_of(note, source_), note_.huber_delta};
  network_.emplace(serve::spec_of(note, {}, weights.tensors, source_), 0);
  train::copy_tensors(weights.tensors, tensors_of(*network_), source_);
  data::check_scale(note_.normalization, nn::elements_of(output()), source_);
}

std::size_t predicted_class(std::span<const float> outputs) {
  if (outputs.size() == 1) return outputs[0] > 0 ? 1 : 0;
  return static_cast<std::size_t>(std::ranges::max_element(outputs) - outputs.begin());
}

std::string AppliedModel::label(std::size_t number) const {
  return number < note_.class_names.size() ? note_.class_names[number] : std::to_string(number);
}

namespace {

/// The samples of a batch that are whole: their values, labels or targets, and numbers.
class BatchOfWhole {
 public:
  BatchOfWhole(const data::Dataset& samples, const data::Normalization& normalization,
               std::size_t first, std::size_t count)
      : samples_(samples), size_(samples.sample_size()) {
    std::vector<std::size_t> indices(count);
    std::iota(indices.begin(), indices.end(), first);
    std::vector<std::uint8_t> damaged(count);
    values_.resize(count * size_);
    samples.gather(indices, normalization, values_, damaged);
    for (std::size_t i = 0; i < count; ++i) {
      if (damaged[i] != 0) continue;
      const auto from = values_.begin() + static_cast<std::ptrdiff_t>(i * size_);
      std::copy(from, from + static_cast<std::ptrdiff_t>(size_),
                values_.begin() + static_cast<std::ptrdiff_t>(numbers_.size() * size_));
      numbers_.push_back(indices[i]);
    }
    targets_ = data::chosen_targets(samples, numbers_);
  }

  const std::vector<std::size_t>& numbers() const { return numbers_; }
  Batch batch() const {
    Batch batch{std::span(values_).first(numbers_.size() * size_), {}, samples_.sample_shape()};
    if (const auto* labels = std::get_if<std::vector<std::int32_t>>(&targets_.values))
      batch.labels = *labels;
    else
      batch.targets = std::get<std::vector<float>>(targets_.values);
    batch.target_shape = targets_.shape;
    return batch;
  }

 private:
  const data::Dataset& samples_;
  std::size_t size_;
  std::vector<float> values_;
  std::vector<std::size_t> numbers_;
  data::Targets targets_;
};

/// A batch of whole samples and its outputs.
struct Pass {
  BatchOfWhole whole;
  std::size_t damaged;
  std::vector<float> outputs = {};
};
/// The pipeline copies what it hands on.
struct Handed {
  std::shared_ptr<Pass> pass;
  std::exception_ptr failure;  ///< thrown in the order of passes, whenever it came
};

/// Computes passes over a data set. Several threads may, each with a network of its own.
class Passes {
 public:
  Passes(const data::Dataset& samples, const data::Normalization& normalization)
      : samples_(samples),
        normalization_(normalization),
        most_(std::clamp(batch_values / std::max<std::size_t>(samples.sample_size(), 1),
                         fewest_samples, most_samples)) {}

  std::size_t count() const { return (samples_.size() + most_ - 1) / most_; }

  Pass compute(std::size_t number, nn::Network<float>& network) const {
    const std::size_t first = number * most_, count = std::min(most_, samples_.size() - first);
    data::Normalization normalization = normalization_;
    if (nn::tokens_of(network.spec()) > 0)  // numbers of words stay as they are
      normalization = normalization.of_tokens(samples_.is_bytes());
    Pass pass{BatchOfWhole(samples_, normalization, first, count), 0};
    const std::size_t whole = pass.whole.numbers().size();
    pass.damaged = count - whole;
    if (whole == 0) return pass;
    const Batch batch = pass.whole.batch();
    // Any labels do: outputs depend on the values alone.
    const nn::Shape steps(network.output().begin(), network.output().end() - 1);
    const std::size_t labels_each = steps.empty() ? 1 : static_cast<std::size_t>(steps.front());
    const std::vector<std::int32_t> labels(whole * labels_each);
    const auto found = network.forward({batch.inputs, labels, batch.sample_shape, {}, steps});
    pass.outputs.assign(found.begin(), found.end());
    data::to_units_of_data(normalization, pass.outputs);
    return pass;
  }

 private:
  const data::Dataset& samples_;
  const data::Normalization& normalization_;
  std::size_t most_;
};

/// With the parameters of the other one, which outlives it.
nn::Network<float> copy_of(nn::Network<float>& network) {
  nn::Network<float> copy(network.spec(), network.parameters().data());
  std::ranges::copy(network.buffers(), copy.buffers().begin());
  return copy;
}

/// How many passes may be computed at once, if one takes so much memory.
std::size_t passes_at_once(std::size_t bytes) {
  using oneapi::tbb::global_control;
  const std::size_t cores = global_control::active_value(global_control::max_allowed_parallelism);
  return std::clamp<std::size_t>(available_memory_bytes() / 2 / std::max<std::size_t>(bytes, 1), 1,
                                 cores);
}

}  // namespace

void AppliedModel::apply(const data::Dataset& samples, const Take& take) {
  const Passes passes(samples, note_.normalization);
  std::size_t damaged = 0, next = 0;
  const auto take_one = [&](const Pass& pass) {
    damaged += pass.damaged;
    if (!pass.outputs.empty()) take(pass.whole.batch(), pass.whole.numbers(), pass.outputs);
  };
  const std::size_t before = resident_memory_bytes();
  if (passes.count() > 0) take_one(passes.compute(next++, *network_));
  const std::size_t after = resident_memory_bytes();
  const std::size_t copied =  // of a network: its gradients and its buffers
      (network_->parameter_count() + network_->buffers().size()) * sizeof(float);
  const std::size_t at_once = passes_at_once(after - std::min(before, after) + copied);
  namespace tbb = oneapi::tbb;
  std::vector<std::optional<nn::Network<float>>> copies(at_once);
  const auto network_of_thread = [&]() -> nn::Network<float>& {
    const auto place = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
    if (place == 0) return *network_;
    if (!copies[place]) copies[place].emplace(copy_of(*network_));
    return *copies[place];
  };
  const auto number = [&](tbb::flow_control& flow) {
    if (next == passes.count()) flow.stop();
    return next++;
  };
  const auto compute = [&](std::size_t each) -> Handed {
    try {
      return {std::make_shared<Pass>(passes.compute(each, network_of_thread())), nullptr};
    } catch (...) {
      return {nullptr, std::current_exception()};
    }
  };
  const auto take_in_order = [&](const Handed& handed) {
    if (handed.failure) std::rethrow_exception(handed.failure);
    take_one(*handed.pass);
  };
  tbb::task_arena threads(static_cast<int>(at_once));
  threads.execute([&] {
    tbb::parallel_pipeline(
        2 * at_once,
        tbb::make_filter<void, std::size_t>(tbb::filter_mode::serial_in_order, number) &
            tbb::make_filter<std::size_t, Handed>(tbb::filter_mode::parallel, compute) &
            tbb::make_filter<Handed, void>(tbb::filter_mode::serial_in_order, take_in_order));
  });
  if (damaged == 0) return;
  warn(LogLevel::warning, fmt::format("{} of {} samples are damaged and left out; the first: {}",
                                      damaged, samples.size(), samples.first_damage()));
}

namespace {

void check_shape(const AppliedModel& model, const data::Dataset& samples, const std::string& from) {
  const train::ModelMetadata& note = model.note();
  const nn::Shape &own = note.input, &theirs = samples.sample_shape();
  const bool is_resizable = own.size() == 3 && theirs.size() == 3 && own[0] == theirs[0];
  require(
      theirs == own, ErrorKind::argument,
      "--data {}: its samples are {}, the model of {} takes {}{}{}", printable(from),
      train::shape_text(theirs), printable(model.source()), train::shape_text(own),
      note.features.empty() ? "" : printable(fmt::format(" ({})", fmt::join(note.features, ", "))),
      is_resizable ? "; --resize model brings images to that size" : "");
}

void check_classes(const AppliedModel& model, const data::Splits& data, const std::string& from) {
  const train::ModelMetadata& note = model.note();
  const data::Dataset& samples = data.test;
  const std::string begin = fmt::format("--data {}: ", printable(from));
  if (!model.has_classes()) {
    require(samples.classes() == 0, ErrorKind::argument,
            "{}it has class labels, the model of {} predicts numbers", begin,
            printable(model.source()));
    const std::int64_t outputs = nn::elements_of(model.output());
    require(std::cmp_equal(samples.target_size(), outputs), ErrorKind::argument,
            "{}{} numbers to predict, the model of {} has {} outputs", begin, samples.target_size(),
            printable(model.source()), outputs);
    return;
  }
  require(samples.classes() > 0, ErrorKind::argument,
          "{}it has numbers to predict, the model of {} knows {} classes", begin,
          printable(model.source()), note.classes);
  require(samples.classes() <= note.classes, ErrorKind::argument,
          "{}{} classes, the model of {} knows {}", begin, samples.classes(),
          printable(model.source()), note.classes);
  require(
      data.class_names.empty() || note.class_names.empty() || data.class_names == note.class_names,
      ErrorKind::argument, "{}its classes are {}, those of the model of {} are {}", begin,
      printable(fmt::format("{}", fmt::join(data.class_names, ", "))), printable(model.source()),
      printable(fmt::format("{}", fmt::join(note.class_names, ", "))));
  const bool is_per_step =
      model.loss().kind == nn::Loss::cross_entropy && model.output().size() > 1;
  const std::size_t labels = is_per_step ? static_cast<std::size_t>(model.output().front()) : 1;
  require(samples.target_size() == labels, ErrorKind::argument,
          "{}{} labels a sample, the model of {} has outputs for {}", begin, samples.target_size(),
          printable(model.source()), labels);
}

/// What the model knows of its data.
void complete(data::LoadOptions& reading, const AppliedModel& model, const std::string& from,
              data::Purpose purpose) {
  const train::ModelMetadata& note = model.note();
  reading.purpose = purpose;
  reading.origins = note.normalization.origins;
  reading.class_names = note.class_names;
  reading.classes = note.classes;
  reading.targets = model.has_classes() ? data::TargetKind::classes : data::TargetKind::numbers;
  std::optional<data::ImageSize> size;
  if (note.input.size() == 3) size = {note.input[1], note.input[2]};
  data::resolve_size(reading, size);
  reading.means = note.normalization.mean;
  if (!data::is_table(from)) return;
  require(note.input.size() == 1, ErrorKind::argument,
          "--data {}: the rows of a table are vectors, the model of {} takes samples of {}",
          printable(from), printable(model.source()), train::shape_text(note.input));
  if (reading.target.empty()) reading.target = note.target;
  if (reading.features.empty()) reading.features = note.features;
  if (purpose == data::Purpose::prediction && !reading.features.empty()) reading.target.clear();
}

bool is_same_data(const std::string& one, const std::string& other) {
  std::error_code ignored;
  return one == other || std::filesystem::equivalent(one, other, ignored);
}

}  // namespace

data::Dataset samples_for(const AppliedModel& model, const DataChoice& choice,
                          data::LoadOptions reading, data::Purpose purpose) {
  complete(reading, model, choice.data, purpose);
  data::Splits data = data::load(choice.data, reading);
  for (const std::string& note : data.notes) warn(LogLevel::info, note);
  const bool evaluates = purpose == data::Purpose::evaluation;
  const bool is_whole = data.train.size() == 0;
  check_shape(model, data.test, choice.data);
  if (evaluates) check_classes(model, data, choice.data);
  require(!is_whole || choice.part != "train", ErrorKind::argument,
          "--part train: --data {} is in one piece; leave the option out, or add --test-share, "
          "which divides it",
          printable(choice.data));
  if (evaluates && is_whole && is_same_data(choice.data, model.note().data))
    warn(LogLevel::warning,
         "the model was trained on these data; --test-share (0.2, if the run had none) takes the "
         "part that it was tested on");
  return choice.part == "train" ? data.train : data.test;
}

}  // namespace fast_model
