// A model under its name: the version that answers, or two that share the requests.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/nn/network.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fast_serve/request_parser.hpp"

namespace fast::serve {

// Weights that answer requests: a network in evaluation mode, and the hash that names it.

/// What training applied to the values of samples; nothing: they are taken as they are.
using Normalizing = std::optional<data::Normalization>;

/// Of a table's columns and of classes; empty where they have none.
struct Names {
  std::vector<std::string> classes = {}, features = {};
  std::string target = {};
};

/// Does not change. Several threads may compute with it.
class ModelVersion {
 public:
  /// `sample` is the shape of what clients send, which the model takes. `tensors` has the model's
  /// parameters and buffers by name, all f32; more are ignored. `source` is for messages. Throws
  /// Error(data) when a tensor is missing, has another shape or type, or has values that are not
  /// finite, and for a model with outputs for each step; Error(argument) when the normalization
  /// does not fit.
  ModelVersion(const nn::ModelSpec& spec, nn::Shape sample, const std::vector<TensorView>& tensors,
               Normalizing normalizing, std::string source, nn::Loss loss = nn::Loss::cross_entropy,
               Names names = {});
  ~ModelVersion();

  /// XXH3 of names, shapes and values of the tensors, of the normalization and of the names of
  /// classes and features: 16 digits. Models of the same hash give the same answers.
  const std::string& hash() const { return hash_; }
  const std::string& source() const { return source_; }  ///< the path
  const nn::ModelSpec& spec() const { return spec_; }
  const nn::Shape& sample() const { return sample_; }
  std::size_t sample_values() const { return sample_values_; }
  std::size_t classes() const { return classes_; }  ///< outputs of a sample
  const Normalizing& normalizing() const { return normalizing_; }
  nn::Loss loss() const { return loss_; }  ///< it says what the outputs mean
  const Names& names() const { return names_; }

  /// The values as the network takes them: data::Dataset::gather() computes them as in training.
  /// Tokens stay the numbers that they are. Throws Refusal(400) for tokens that the model does not
  /// have, and for other bytes that are said to be normalized.
  std::vector<float> inputs(Instances instances) const;

  /// The logits [count x classes] of `count` samples, as nn::Network::forward() computes them.
  std::vector<float> forward(std::span<const float> inputs, std::size_t count) const;

 private:
  class Lease;

  std::string hash_of(const std::vector<TensorView>& tensors) const;
  std::unique_ptr<nn::Network<float>> take_network() const;

  nn::ModelSpec spec_;
  nn::Shape sample_;
  Normalizing normalizing_;
  std::string source_, hash_;
  nn::Loss loss_;
  Names names_;
  std::size_t sample_values_ = 0, classes_ = 0;
  std::unique_ptr<nn::Network<float>> first_;  ///< has the parameters
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<nn::Network<float>>> idle_;
};

// Shares of the requests between two versions of a model.

/// "digits=old:0.9,new:0.1"
struct Split {
  std::string model;
  double new_share = 1;  ///< in [0, 1]; the old version has the rest
};

/// The shares must add up to 1. Nothing when the text is not of that form.
std::optional<Split> read_split(std::string_view text);

/// Whether request `number` (0, 1, ...) is the new version's. Of the first n requests it gets
/// n x share, rounded down: the shares hold at any time, without a random number.
bool is_for_new(std::uint64_t number, double share);

/// What a version becomes. newest: the new one, and with a share, the new one before it is the old
/// one. For models whose two versions come from two places: the new one or the old one, and the
/// other stays.
enum class Becomes { newest, new_one, old_one };

/// One version with its part in a model.
struct Standing {
  std::shared_ptr<const ModelVersion> version;
  std::string role;  ///< "new" or "old"
  double share = 1;
  std::chrono::system_clock::time_point since;
};

/// Several threads may use it.
class ServedModel {
 public:
  /// Without a share, the newest version alone answers, and no other is kept.
  ServedModel(std::string name, std::optional<double> new_share);

  const std::string& name() const { return name_; }

  /// Of the same hash as the one in its place: nothing happens, and false is returned. Throws
  /// Error(data) when samples or classes are not those of the versions that are there.
  bool install(std::shared_ptr<const ModelVersion> version, Becomes role = Becomes::newest);

  /// The version for the next request, by the shares.
  std::shared_ptr<const ModelVersion> choose();
  /// Null: there is none of that hash.
  std::shared_ptr<const ModelVersion> find(std::string_view hash) const;
  /// The new version first. Shares add up to 1.
  std::vector<Standing> standings() const;

 private:
  struct Held {
    std::shared_ptr<const ModelVersion> version;
    std::chrono::system_clock::time_point since;
  };
  void check_fit(const ModelVersion& version) const;

  const std::string name_;
  const std::optional<double> new_share_;
  mutable std::mutex mutex_;
  Held new_, old_;
  std::uint64_t requests_ = 0;
};

}  // namespace fast::serve
