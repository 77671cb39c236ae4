// What a sweep of a rule does to a run of elements, for devices that do each apart:
// lib/cuda/averaging/rule_elements.hpp does it.
#pragma once

#include <fast/core/element.hpp>

#include <optional>
#include <variant>
#include <vector>

#include "algorithm/averaging.hpp"
#include "algorithm/rules/gasloc.hpp"
#include "algorithm/rules/gradient_correction.hpp"
#include "algorithm/rules/outer_steps.hpp"
#include "algorithm/rules/push_sum.hpp"

namespace fast::combine {

/// The rules that devices know.
using DeviceRule =
    std::variant<algorithm::Averaging, algorithm::D2, algorithm::DecentLam, algorithm::DiLoCo,
                 algorithm::GasLoC, algorithm::GradientExchange, algorithm::GradientTracking,
                 algorithm::NoLoCo, algorithm::PartialAveraging, algorithm::PushSum,
                 algorithm::QuasiGlobalMomentum>;
/// That of an algorithm, as it is now; empty where it is none of them.
std::optional<DeviceRule> device_rule(const algorithm::Algorithm& algorithm);

/// Most neighbors of a worker.
inline constexpr int max_element_sources = 128;

/// Pointers are to the run's first element. What is absent is not done; in this order:
struct ElementWork {
  DType type = DType::f32;  ///< of the model: f32 or f64
  DType slot = DType::f32;  ///< of messages: the model's, or bf16 (Averaging over f32)
  DeviceRule rule;
  algorithm::RoundInfo info;
  std::size_t first = 0;  ///< as in Block
  std::size_t count = 0;
  int vectors = 1;  ///< of the payload
  void* current = nullptr;
  void* state[algorithm::max_state_vectors] = {};

  bool starts = false;  ///< the rule's start()
  /// Pulls are computed from `sources` towards `own` or, of `buffer`s, towards the model.
  bool pulls = false;
  bool buffer = false;
  /// x + Σ_j W_ij (m_j - m_i) in one sum: the whole combination.
  bool average = false;
  std::vector<const void*> sources;  ///< vector 0 of each neighbor's message
  std::vector<double> weights;
  const void* own = nullptr;     ///< vector 0 of the worker's own message
  std::size_t stride_bytes = 0;  ///< from one vector of a message to the next
  void* gathered[algorithm::max_payload_vectors] =
      {};                        ///< where pulls are kept: written by `pulls`, else read
  bool combines = false;         ///< the rule's combine()
  void* next = nullptr;          ///< publish() fills vector 0 and on
  void* next_weights = nullptr;  ///< the model is copied there
};

}  // namespace fast::combine
