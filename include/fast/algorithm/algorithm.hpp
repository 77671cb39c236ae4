// One rule of decentralized training: where a worker stands next, given where it stood, how far its
// own optimizer moved it, and where its neighbours stood. A rule is elementwise arithmetic over
// blocks; it knows neither MPI nor a framework. docs/algorithms.md shows how to add one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fast::algorithm {

inline constexpr int max_payload_vectors = 2;
inline constexpr int max_state_vectors = 4;

/// When a worker publishes: what it stood at before its step (so that neighbours read while
/// gradients are computed), or what it came to after it.
enum class PublishPoint { before_step, after_step };

/// Which publications a rule needs: any recent one, or each exactly once and in order.
enum class Delivery { latest, every };

/// With whom a rule combines.
enum class Scope {
  nobody,     ///< every worker on its own
  neighbors,  ///< those of the round's topology
  everybody,  ///< an all-reduce of what the steps changed
};

/// What a rule needs and sends.
struct Declaration {
  std::string_view name;
  std::string_view summary;  ///< the rule in one line
  std::string_view source;   ///< paper and equation
  Scope scope = Scope::neighbors;
  PublishPoint publish_point = PublishPoint::before_step;
  Delivery delivery = Delivery::latest;
  int payload_vectors = 1;  ///< vectors of the model's size sent to each neighbour
  int state_vectors = 0;    ///< vectors of the model's size kept between rounds
  bool needs_doubly_stochastic = true;
  /// x⁺ = current + Σ W_ij (m_j - m_i) and the payload is x⁺ itself: served by one fused kernel.
  bool plain_average = false;
};

/// What holds for a whole round.
struct RoundInfo {
  std::int64_t round = 0;
  double learning_rate = 0;  ///< of the step just made; 0 when the caller gave none
};

/// A run of elements of a worker's vectors, T float or double. Pointers are distinct.
template <class T>
struct Block {
  std::size_t count = 0;
  RoundInfo info;
  /// The model. On entry the weights after the worker's own step; combine() leaves the next value
  /// there.
  T* current = nullptr;
  /// The worker's own publication of this round, by payload vector.
  std::array<const T*, max_payload_vectors> own{};
  /// Σ_{j≠i} W_ij (m_j - m_i), by payload vector: what the neighbours pull towards.
  std::array<const T*, max_payload_vectors> pull{};
  /// Memory kept between rounds, zero at first.
  std::array<T*, max_state_vectors> state{};
  /// The publication to fill (publish() only).
  std::array<T*, max_payload_vectors> payload{};
};
using AnyBlock = std::variant<Block<float>, Block<double>>;

/// A rule. start() is called once with the initial weights in `current`; then publish() before the
/// first step (or, for after_step rules, after every step), and combine() at the end of each round,
/// followed for before_step rules by publish() of the next. Calls see all blocks of the model in
/// any order and must treat elements alike.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual const Declaration& declaration() const = 0;
  virtual void start(const AnyBlock& block) = 0;
  virtual void publish(const AnyBlock& block) = 0;
  virtual void combine(const AnyBlock& block) = 0;
};

/// Makes an Algorithm of a class with template members start/publish/combine(const Block<T>&) and
/// a static Declaration declare().
template <class Rule>
class Elementwise : public Algorithm {
 public:
  explicit Elementwise(Rule rule = {}) : rule_(std::move(rule)), declaration_(rule_.declare()) {}
  const Declaration& declaration() const override { return declaration_; }
  void start(const AnyBlock& block) override {
    std::visit([this](const auto& b) { rule_.start(b); }, block);
  }
  void publish(const AnyBlock& block) override {
    std::visit([this](const auto& b) { rule_.publish(b); }, block);
  }
  void combine(const AnyBlock& block) override {
    std::visit([this](const auto& b) { rule_.combine(b); }, block);
  }

 private:
  Rule rule_;
  Declaration declaration_;
};

std::unique_ptr<Algorithm> none();       ///< x_i + δ_i: no exchange
std::unique_ptr<Algorithm> awc();        ///< adapt-while-combine, the default
std::unique_ptr<Algorithm> atc();        ///< adapt-then-combine
std::unique_ptr<Algorithm> allreduce();  ///< x_i + mean of δ: the baseline

/// Names of all rules, in the order of docs/algorithms.md.
std::vector<std::string_view> names();
/// A rule by its name. Throws Error(argument) that lists the names.
std::unique_ptr<Algorithm> by_name(std::string_view name);

}  // namespace fast::algorithm
