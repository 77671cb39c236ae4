#include "fast_serve/served_model.hpp"

#include <cmath>
#include <fast/core/error.hpp>

#include "core/message.hpp"
#include "core/text.hpp"
#include "data/target_scale.hpp"
#include "options/value.hpp"

#define XXH_INLINE_ALL

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <fast/nn/loss.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/train/model_metadata.hpp>
#include <numeric>

#include "fast_serve/request_parser.hpp"
#include "nn/shape.hpp"

namespace fast::serve {
namespace {

/// Parameters first.
std::vector<TensorView> tensors_of(nn::Network<float>& network) {
  std::vector<TensorView> views = network.parameter_views();
  for (TensorView& buffer : network.buffer_views()) views.push_back(std::move(buffer));
  return views;
}

std::span<const float> values_of(const TensorView& view) {
  return {static_cast<const float*>(view.data), view.element_count()};
}

void check_finite_weights(const std::vector<TensorView>& tensors, const std::string& source) {
  for (const TensorView& view : tensors) {
    const auto values = values_of(view);
    const bool good = std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
    require(good, ErrorKind::data, "{}: {} has values that are not finite; save the model again",
            source, printable(view.name));
  }
}

/// Samples in the memory of `values`, for their arithmetic.
template <class T>
std::vector<float> gathered(const std::vector<T>& values, std::size_t count,
                            const nn::Shape& sample, const data::Normalization& normalization) {
  const std::vector<std::int32_t> labels(count);
  const data::Dataset samples("request", sample, {std::span<const T>(values), labels, nullptr}, 1);
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::vector<float> out(values.size());
  samples.gather(indices, normalization, out);
  return out;
}

void check_tokens(std::span<const float> values, std::int64_t tokens, std::size_t sample_values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float token = values[i];
    if (nn::is_token(token, tokens)) continue;
    refuse(400, "instance {}: token {}; whole numbers from 0 to {} are required", i / sample_values,
           token, tokens - 1);
  }
}

}  // namespace

/// A network that one thread computes with; it is put back at the end.
class ModelVersion::Lease {
 public:
  explicit Lease(const ModelVersion& version)
      : version_(version), network_(version.take_network()) {}
  ~Lease() {
    const std::lock_guard lock(version_.mutex_);
    version_.idle_.push_back(std::move(network_));
  }
  nn::Network<float>& network() { return *network_; }

 private:
  const ModelVersion& version_;
  std::unique_ptr<nn::Network<float>> network_;
};

ModelVersion::ModelVersion(const nn::ModelSpec& spec, nn::Shape sample,
                           const std::vector<TensorView>& tensors, Normalizing normalizing,
                           std::string source, nn::Loss loss, Names names)
    : spec_(spec),
      sample_(std::move(sample)),
      normalizing_(std::move(normalizing)),
      source_(std::move(source)),
      loss_(loss),
      names_(std::move(names)) {
  const nn::Shape output = nn::shapes(spec_).back();
  require(output.size() == 1, ErrorKind::data,
          "{}: the model {} has the outputs {}, for each step; only models with one vector of "
          "outputs are served",
          source_, spec_.name, nn::describe(output));
  first_ = std::make_unique<nn::Network<float>>(spec_, 0);
  require(nn::takes(spec_, sample_), ErrorKind::data,
          "{}: the model {} takes samples of the shape {}, its metadata has {}", source_,
          spec_.name, nn::describe(spec_.input), nn::describe(sample_));
  sample_values_ = static_cast<std::size_t>(nn::elements_of(sample_));
  classes_ = static_cast<std::size_t>(first_->classes());
  const std::vector<TensorView> own = tensors_of(*first_);
  train::copy_tensors(tensors, own, source_);
  check_finite_weights(own, source_);
  hash_ = hash_of(own);
  if (normalizing_) {  // throws when it does not fit the channels
    gathered(std::vector<float>(sample_values_), 1, sample_, *normalizing_);
    data::check_scale(*normalizing_, first_->classes(), source_);
    const std::vector<double>& origins = normalizing_->origins;
    require(origins.empty(), ErrorKind::data,
            "{}: its features have values near {} with small differences, which the 32-bit floats "
            "of requests cannot tell apart; subtract a constant in the data and train again, or "
            "export the model (fast-model export --to MODEL.onnx), whose input has 64 bits",
            source_, fmt::join(origins, ", "));
  }
}

ModelVersion::~ModelVersion() = default;

std::string ModelVersion::hash_of(const std::vector<TensorView>& tensors) const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_64bits_reset(state.get());
  const auto add = [&](const std::string& text) {
    XXH3_64bits_update(state.get(), text.data(), text.size());
  };
  for (const TensorView& view : tensors) {
    add(fmt::format("{} {};", view.name, fmt::join(view.shape, "x")));
    XXH3_64bits_update(state.get(), view.data, view.element_count() * sizeof(float));
  }
  add(fmt::format("{};{}", nn::name(loss_), nn::describe(spec_)));
  if (normalizing_) {
    add(fmt::format("{}/{}", fmt::join(normalizing_->mean, ","),
                    fmt::join(normalizing_->stddev, ",")));
    if (!normalizing_->target_mean.empty())
      add(fmt::format("{}/{}", fmt::join(normalizing_->target_mean, ","),
                      fmt::join(normalizing_->target_stddev, ",")));
  }
  for (const std::string& name : names_.classes) add(name + ';');
  for (const std::string& name : names_.features) add(name + ';');
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

/// Each has its own activations; all have the first one's parameters.
std::unique_ptr<nn::Network<float>> ModelVersion::take_network() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto network = std::move(idle_.back());
      idle_.pop_back();
      return network;
    }
  }
  auto network = std::make_unique<nn::Network<float>>(spec_, first_->parameters().data());
  std::copy(first_->buffers().begin(), first_->buffers().end(), network->buffers().begin());
  return network;
}

std::vector<float> ModelVersion::inputs(Instances instances) const {
  if (const std::int64_t count = nn::tokens_of(spec_); count > 0) {
    std::vector<float> tokens = std::visit(
        [](const auto& values) { return std::vector<float>(values.begin(), values.end()); },
        instances.values);
    check_tokens(tokens, count, sample_values_);
    return tokens;
  }
  if (auto* floats = std::get_if<std::vector<float>>(&instances.values)) {
    if (instances.normalized || !normalizing_) return std::move(*floats);
    return gathered(*floats, instances.count, sample_, *normalizing_);
  }
  if (instances.normalized) {
    refuse(400, "values of the type u8 cannot be normalized; leave \"normalized\" out or send f32");
  }
  return gathered(std::get<std::vector<std::uint8_t>>(instances.values), instances.count, sample_,
                  normalizing_.value_or(data::Normalization{}));
}

std::vector<float> ModelVersion::forward(std::span<const float> inputs, std::size_t count) const {
  Lease lease(*this);
  const std::vector<std::int32_t> labels(count);
  const auto logits = lease.network().forward({inputs, labels, sample_});
  std::vector<float> outputs(logits.begin(), logits.end());
  if (normalizing_) data::to_units_of_data(*normalizing_, outputs);
  return outputs;
}

namespace {

/// "old:0.9"
std::optional<double> share_in(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || text.substr(name.size(), 1) != ":") return std::nullopt;
  double share = 0;
  if (!reads(text.substr(name.size() + 1), share)) return std::nullopt;
  if (!(share >= 0 && share <= 1)) return std::nullopt;
  return share;
}

}  // namespace

std::optional<Split> read_split(std::string_view text) {
  const std::size_t equal = text.find('='), comma = text.find(',');
  if (equal == 0 || equal == std::string_view::npos || comma == std::string_view::npos ||
      comma < equal) {
    return std::nullopt;
  }
  const auto first = text.substr(equal + 1, comma - equal - 1), second = text.substr(comma + 1);
  const bool in_order = first.starts_with("old");
  const auto old_share = share_in(in_order ? first : second, "old");
  const auto new_share = share_in(in_order ? second : first, "new");
  if (!old_share || !new_share || std::abs(*old_share + *new_share - 1) > 1e-9) return std::nullopt;
  return Split{std::string(text.substr(0, equal)), *new_share};
}

bool is_for_new(std::uint64_t number, double share) {
  // A share as it is written, 0.1, is a little off as a binary number; a sum is not to fall below
  // a whole number by that.
  const auto given = [share](std::uint64_t requests) {
    return std::floor(static_cast<double>(requests) * share + 1e-9);
  };
  return given(number + 1) > given(number);
}

ServedModel::ServedModel(std::string name, std::optional<double> new_share)
    : name_(std::move(name)), new_share_(new_share) {}

/// What clients send and get stays the same.
void ServedModel::check_fit(const ModelVersion& version) const {
  const auto& present = new_.version ? new_.version : old_.version;
  if (!present) return;
  require(
      version.sample() == present->sample() && version.classes() == present->classes() &&
          version.loss() == present->loss(),
      ErrorKind::data,
      "{}: it takes samples of the shape {} and has {} outputs for {}; model {} has {}, {} and {}",
      printable(version.source()), nn::describe(version.sample()), version.classes(),
      nn::name(version.loss()), printable(name_), nn::describe(present->sample()),
      present->classes(), nn::name(present->loss()));
}

bool ServedModel::install(std::shared_ptr<const ModelVersion> version, Becomes role) {
  const std::lock_guard lock(mutex_);
  check_fit(*version);
  Held& place = role == Becomes::old_one ? old_ : new_;
  if (place.version && place.version->hash() == version->hash()) return false;
  if (role == Becomes::newest && new_share_ && new_.version) old_ = new_;
  place = {std::move(version), std::chrono::system_clock::now()};
  return true;
}

std::shared_ptr<const ModelVersion> ServedModel::choose() {
  const std::lock_guard lock(mutex_);
  if (!old_.version) return new_.version;
  return is_for_new(requests_++, new_share_.value_or(1)) ? new_.version : old_.version;
}

std::shared_ptr<const ModelVersion> ServedModel::find(std::string_view hash) const {
  const std::lock_guard lock(mutex_);
  for (const Held* held : {&new_, &old_}) {
    if (held->version && held->version->hash() == hash) return held->version;
  }
  return nullptr;
}

std::vector<Standing> ServedModel::standings() const {
  const std::lock_guard lock(mutex_);
  const double new_share = old_.version ? new_share_.value_or(1) : 1;
  std::vector<Standing> all;
  if (new_.version) all.push_back({new_.version, "new", new_share, new_.since});
  if (old_.version) all.push_back({old_.version, "old", 1 - new_share, old_.since});
  return all;
}

}  // namespace fast::serve
