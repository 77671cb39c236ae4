// What a sweep of a rule does to the elements of a model, for devices that do each apart:
// lib/cuda/averaging/rule_elements.hpp does it.
#pragma once

#include <fast/core/element.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "algorithm/averaging.hpp"
#include "algorithm/rules/a2cid2.hpp"
#include "algorithm/rules/gasloc.hpp"
#include "algorithm/rules/gradient_correction.hpp"
#include "algorithm/rules/outer_steps.hpp"
#include "algorithm/rules/push_sum.hpp"
#include "combine/element_runs.hpp"

namespace fast::combine {

/// The rules that devices know. Work without one has the first.
using DeviceRule =
    std::variant<algorithm::Averaging, algorithm::A2cid2, algorithm::AveragedMomentum,
                 algorithm::CodedGasLoC, algorithm::D2, algorithm::DecentLam, algorithm::DiLoCo,
                 algorithm::Edm, algorithm::GasLoC, algorithm::GradientExchange,
                 algorithm::GradientTracking, algorithm::Gut, algorithm::NoLoCo,
                 algorithm::PartialAveraging, algorithm::PushSum, algorithm::QuasiGlobalMomentum>;
/// That of an algorithm, as it is now; empty where it is none of them.
std::optional<DeviceRule> device_rule(const algorithm::Algorithm& algorithm);

/// Most neighbors of a worker.
inline constexpr int max_element_sources = 128;

/// What is absent is not done; in this order:
struct ElementWork {
  DType type = DType::f32;  ///< of the model
  DType slot = DType::f32;  ///< of messages: the model's, or bf16 or f16 (Averaging over f32)
  RunTable table{};
  DeviceRule rule;  ///< of parameters. Buffers are averaged.
  algorithm::RoundInfo info;
  int vectors = 1;  ///< of the payload. Buffers have one.
  /// In the type of computation, which is f32 for 16-bit weights. A model with such weights has
  /// `widening` 2: an element lies at twice its place in the model.
  std::byte* state[algorithm::max_state_vectors] = {};
  std::byte* sent[algorithm::max_payload_vectors] = {};  ///< payloads that messages round, likewise
  std::byte* remainder = nullptr;  ///< of 16-bit weights: bf16, laid out as the model
  int widening = 1;

  bool starts = false;  ///< the rule's start()
  /// Pulls are computed from `sources` towards `own` or, of buffers, towards the model.
  bool pulls = false;
  bool unit = false;  ///< weights of pulls are 1, except for buffers
  /// x + Σ_j W_ij (m_j - m_i) in one sum: the whole combination.
  bool average = false;
  bool sums_first = false;                ///< of `average`: the sum is made before it is added
  std::vector<const std::byte*> sources;  ///< vector 0 of each neighbor's message
  std::vector<double> weights;
  const std::byte* own = nullptr;     ///< vector 0 of the worker's own message
  std::size_t stride_bytes = 0;       ///< from one vector of a message to the next
  bool combines = false;              ///< the rule's combine()
  std::byte* next = nullptr;          ///< publish() fills vector 0 and on
  std::byte* next_weights = nullptr;  ///< the model is copied there
  Looks* looks = nullptr;             ///< look `number` is made, and nothing else
  /// If look `number` has met such a value, the weights first become `own`.
  const Looks* restores_after = nullptr;
  std::uint32_t number = 0;
};

}  // namespace fast::combine
