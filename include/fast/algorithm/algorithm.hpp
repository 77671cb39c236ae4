// One rule of decentralized training: where a worker stands next, given where it stood, how far its
// own optimizer moved it, and where its neighbors stood. A rule is elementwise arithmetic over
// blocks; it knows neither MPI nor a framework. docs/extending/algorithm.md shows how to add one;
// fast/algorithm/rules.hpp has those of the library.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fast::algorithm {

inline constexpr int max_payload_vectors = 8;
inline constexpr int max_payload_scalars = 8;
inline constexpr int max_state_vectors = 8;

/// When a worker publishes: what it stood at before its step (so that neighbors read while
/// gradients are computed), or what it came to after it.
enum class PublishPoint { before_step, after_step };

/// Which publications a rule needs.
enum class Delivery {
  latest,  ///< any recent one
  every,   ///< each exactly once and in order: staleness 0
  /// Each exactly once, though several at a time: at staleness above 0 what travels is the f64 sum
  /// of all publications so far, of which readers take differences. Needs a static topology then.
  summed,
};

/// The workers that a rule combines.
enum class Scope {
  nobody,     ///< every worker on its own
  neighbors,  ///< those of the round's topology
  everybody,  ///< an all-reduce of what the steps changed
};

/// What a rule needs of the mixing matrix.
enum class MixingRequirement {
  anything,
  doubly_stochastic,  ///< warned about: without it the workers' mean wanders
  symmetric,          ///< and doubly stochastic; refused without
  positive,           ///< symmetric, eigenvalues above a bound; else made lazy, (I+W)/2
  column_stochastic,  ///< refused without
  matching,           ///< pairs that read each other with weights 1/2; refused without
  /// Edges both ways that close no cycle, and a payload vector for each neighbor of a worker, which
  /// counts 1; refused without.
  tree,
  complete,  ///< each worker reads all others with weights 1/N; refused without
  unit,      ///< every neighbor counts 1, whatever the weights
};

/// The meaning of Block::own in combine(): a codec, or 16-bit weights, round the message.
enum class Own {
  unused,   ///< combine() does not look at it
  payload,  ///< exactly what publish() filled in: a worker's own values are not rounded
  message,  ///< what the neighbors see of it
};

/// How many entries of a payload are not 0, at most: no bound, `entries`, or (when that is 0) a
/// fraction of the parameters, at least one.
struct Sparsity {
  std::int64_t entries = 0;
  double fraction = 0;
  bool bounded() const { return entries > 0 || fraction > 0; }
  std::size_t of(std::size_t parameter_count) const;
};

/// Which entries of a payload travel. All workers know them from a number in the message, so that
/// no indices travel. Readers take entries that do not travel as equal to their own.
struct Selection {
  enum class Kind {
    all,
    one_of_each_run,  ///< of every `size` entries one, drawn at random for each combination
    fragments,        ///< one of `size` equal parts of the model, in turn
  } kind = Kind::all;
  std::int64_t size = 1;
  std::uint64_t seed = 1;
  /// The payload is a change: entries that do not travel are 0, and each worker draws its own.
  bool of_changes = false;
  bool selects() const { return kind != Kind::all; }
};

/// These traits say what a rule sends, and what it reads of that.
struct Messages {
  int vectors = 1;  ///< vectors of the model's size sent to each neighbor
  int scalars = 0;  ///< doubles sent with them
  Delivery delivery = Delivery::latest;
  int summed_from = 0;  ///< Delivery::summed: payload vectors from this one on, and scalars
  /// Bounded: the payload travels as its entries. A codec codes their values, and what that loses
  /// is not added to the next message.
  Sparsity sparsity{};
  Selection selection{};
  /// Payload vector 0 is not what the mean model is made of: the weights are published beside the
  /// payload, where neighbors do not read them.
  bool weights_apart = false;
  /// Of MixingRequirement::tree: each vector, with the scalar of its number, is for one neighbor.
  /// If it reads vector k of this worker, this worker reads its vector `vectors` - 1 - k.
  bool by_edge = false;
  Own own = Own::payload;
  /// publish() changes no state and gives the same again until combine(): what was published need
  /// not be read back, and the end of a round has a stream less.
  bool republishes = false;
  bool surveys = false;  ///< looks at the whole model before it publishes
};

/// When a rule publishes and combines, and how old what it reads may be.
struct Timing {
  PublishPoint publish_point = PublishPoint::before_step;
  std::int64_t combine_every = 1;  ///< steps between two combinations
  /// Steps between the publication for a combination and that combination, below combine_every.
  /// Only rules that publish after the step have it.
  std::int64_t delay = 0;
  std::int64_t average_every = 0;  ///< every so many combinations an exact global average; 0: never
  std::string_view why_synchronous{};  ///< why staleness above 0 is refused; empty: it fits
  std::string_view why_bounded{};      ///< why unbounded staleness is warned about; empty: it fits
};

/// These traits say with whom a rule combines, and with which weights.
struct TopologyNeeds {
  Scope scope = Scope::neighbors;
  MixingRequirement mixing = MixingRequirement::doubly_stochastic;
  bool strict = false;                  ///< MixingRequirement::positive is refused, not made lazy
  double eigenvalues_above = -1.0 / 3;  ///< of MixingRequirement::positive
  /// Readers divide what a worker sends, and it keeps the shares of absent readers (see
  /// RoundInfo::self_weight). Needs columns of weights that sum to 1. Always so with
  /// MixingRequirement::column_stochastic.
  bool passes_mass = false;
  bool divides() const { return passes_mass || mixing == MixingRequirement::column_stochastic; }
  bool needs_static = false;  ///< schedules that change from round to round are refused
  /// Each round of the topology is within sites or between them (RoundInfo::between_sites): others
  /// are refused. Weights whose columns sum to 1 on average over rounds are enough: when sites
  /// exchange, the values of a site's workers differ by steps only.
  bool needs_sites = false;
  bool needs_meetings = false;  ///< RoundInfo::meetings; of MixingRequirement::matching
};

/// Which codecs a rule bears.
struct Precision {
  /// Why codecs that lose something are refused; empty: they fit.
  std::string_view why_exact{};
  /// Codecs of fewer bits an element are refused, and why.
  int least_bits = 8;
  std::string_view why_bits = "weights in coarser codes do not converge";
  /// The rule makes up for what coding lost. Else codecs add that to the next message.
  bool corrects_coding = false;
};

/// These traits say what a rule keeps between rounds.
struct Memory {
  int vectors = 0;  ///< vectors of the model's size, Block::state
  /// Rules that publish after the step only: the state refers to what neighbors have sent (a
  /// correction or mass that sums to a constant over all workers). When a neighbor leaves or comes
  /// back, all workers that can reach each other begin the state anew with Sweep::start.
  bool remembers_neighbors = false;
  /// The rule keeps differences between workers' weights as they are in start(): all workers must
  /// start equal.
  bool needs_equal_start = false;
};

/// These traits say what a rule asks of the optimizer's step.
struct Step {
  bool needs_learning_rate = false;  ///< refuses a step without StepOptions::learning_rate
  bool own_momentum = false;         ///< made of one step of plain SGD in a round
  /// Which learning rates the rule bears, for the error of a run that diverges; empty: as SGD.
  std::string_view stable_rates{};
};

/// The properties of a rule: what it needs and sends.
struct RuleTraits {
  std::string_view name;
  std::string_view summary;  ///< the rule in one line
  std::string_view source;   ///< paper and equation
  /// x⁺ = current + Σ W_ij (m_j - m_i) and the payload is x⁺ itself: served by one fused kernel.
  /// The functions of such a rule need not be called.
  bool plain_average = false;
  Messages messages{};
  Timing timing{};
  TopologyNeeds topology{};
  Precision precision{};
  Memory memory{};
  Step step{};
  std::string parameters{};  ///< "period=4": equal on all workers
};

/// How fast values spread over a schedule of pairs. A is the Laplacian whose weights are the
/// meetings of each pair in a round. Both are 0 where nobody meets.
struct Meetings {
  double spread = 0;      ///< χ₁: 1 / the smallest eigenvalue of A above 0
  double resistance = 0;  ///< χ₂: largest (e_i - e_j)' A⁺ (e_i - e_j) / 2 of pairs that meet
};

/// What holds for a whole round.
struct RoundInfo {
  std::int64_t round = 0;
  bool asynchronous = false;  ///< the staleness bound is above 0
  bool starts_equal = false;  ///< in start() only: all workers have these same weights
  /// True in start() in the midst of training, and in combine() of rules that pass mass when
  /// start() has just been called. Block::own is the message from before that call, Block::pull is
  /// of new messages.
  bool restarts = false;
  int workers = 0;           ///< of the run, in combine()
  double learning_rate = 0;  ///< of the step just made; 0 when the caller gave none
  double largest_rate = 0;   ///< of the run's steps so far, as the caller knows it; or 0
  /// W_ii; of rules that pass mass, with the shares of absent readers, and 0 when the rule
  /// restarts. Known in combine() only, as neighbor_weight.
  double self_weight = 1;
  double neighbor_weight = 0;  ///< Σ_{j≠i} W_ij of the neighbors present
  /// 1 if the neighbor whose vector k is for this worker is present: known in combine() only, of
  /// rules with Messages::by_edge. What it sent is `edge_weight[k] · own[k] + pull[k]`.
  double edge_weight[max_payload_vectors] = {};
  Meetings meetings{};  ///< of rules that need it, in combine()
  /// Of rules that need sites, in combine(): the round is one between sites; the next one is.
  bool between_sites = false, between_sites_next = false;
  std::uint64_t parameters = 0;  ///< elements of the whole model, buffers left out
};

/// A run of elements of a worker's vectors, T float or double. Pointers are distinct. Arrays are
/// plain, for kernels.
template <class T>
struct Block {
  std::size_t first = 0;  ///< index of its first element among the model's parameters
  std::size_t count = 0;
  RoundInfo info;
  /// The model. On entry the weights after the worker's own step; combine() leaves the next value
  /// there.
  T* current = nullptr;
  /// The worker's own publication in force, by payload vector (see Own). Null in publish().
  const T* own[max_payload_vectors] = {};
  /// The publication in force as the neighbors see it, by payload vector. `pull` refers to it. With
  /// a codec it may differ from `own`.
  const T* message[max_payload_vectors] = {};
  /// Σ_{j≠i} W_ij (m_j - m_i), by payload vector: what the neighbors pull towards.
  const T* pull[max_payload_vectors] = {};
  /// Memory kept between rounds, zero at first.
  T* state[max_state_vectors] = {};
  /// The publication to fill (publish() only).
  T* payload[max_payload_vectors] = {};
};
using AnyBlock = std::variant<Block<float>, Block<double>>;

/// The sweeps over all blocks of the model, in ascending order of Block::first. Several
/// WorkerOptions::mixing_threads sweep the blocks of a rule that devices know at once, in any
/// order.
enum class Sweep {
  /// Once with the initial weights in `current`, when weights were loaded by hand, and, of rules
  /// that remember their neighbors, when one of these has left or come back.
  start,
  survey,   ///< before each publication, of rules that survey
  publish,  ///< before the first step (for after_step rules after every step)
  combine,  ///< at the end of each round, for before_step rules followed by publish of the next
};

/// A rule. One object a worker. Sweeps must treat elements alike.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual const RuleTraits& traits() const = 0;
  virtual void apply(Sweep sweep, const AnyBlock& block) = 0;
  /// Once before each publish sweep, after the survey: fills the payload's scalars. False
  /// (surveying rules only): nothing is published, the last publication stays in force.
  virtual bool begin_publish(const RoundInfo& info, std::span<double> scalars) = 0;
  /// Once before each combine sweep: the payload's scalars, as own and pull of Block.
  virtual void begin_combine(const RoundInfo& info, std::span<const double> own,
                             std::span<const double> pull) = 0;
  /// Views of the numbers that it keeps between rounds besides Block::state, for checkpoints.
  virtual std::vector<TensorView> state() { return {}; }
  /// A copy of what its sweeps over elements need, as it is now, by which a device knows its kernel
  /// of the rule; empty where the rule runs on the host alone.
  virtual std::any arithmetic() const { return {}; }
};

/// Makes an Algorithm of a class with a member RuleTraits traits() const and template members
/// publish and combine(const Block<T>&); start and survey(const Block<T>&), begin_publish,
/// begin_combine and numbers() (its state()) where it needs them; a type Arithmetic, which it is or
/// derives from, where that is known to devices.
template <class Rule>
class Elementwise : public Algorithm {
 public:
  explicit Elementwise(Rule rule = {}) : rule_(std::move(rule)), traits_(rule_.traits()) {}
  const RuleTraits& traits() const override { return traits_; }
  void apply(Sweep sweep, const AnyBlock& block) override {
    std::visit([this, sweep](const auto& b) { this->apply_to(sweep, b); }, block);
  }
  bool begin_publish(const RoundInfo& info, std::span<double> scalars) override {
    if constexpr (requires { rule_.begin_publish(info, scalars); }) {
      return rule_.begin_publish(info, scalars);
    }
    return true;
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) override {
    if constexpr (requires { rule_.begin_combine(info, own, pull); }) {
      rule_.begin_combine(info, own, pull);
    }
  }
  std::vector<TensorView> state() override {
    if constexpr (requires { rule_.numbers(); }) return rule_.numbers();
    return {};
  }
  std::any arithmetic() const override {
    if constexpr (requires { typename Rule::Arithmetic; }) {
      return static_cast<const typename Rule::Arithmetic&>(rule_);
    }
    return {};
  }

 private:
  template <class T>
  void apply_to(Sweep sweep, const Block<T>& block) {
    if (sweep == Sweep::publish) rule_.publish(block);
    if (sweep == Sweep::combine) rule_.combine(block);
    if constexpr (requires { rule_.start(block); }) {
      if (sweep == Sweep::start) rule_.start(block);
    }
    if constexpr (requires { rule_.survey(block); }) {
      if (sweep == Sweep::survey) rule_.survey(block);
    }
  }

  Rule rule_;
  RuleTraits traits_;
};

/// A rule with its options, for any number of workers: each makes an Algorithm of its own. A value
/// that does not change.
class Rule {
 public:
  using Make = std::function<std::shared_ptr<Algorithm>()>;
  /// `make` returns a new object at each call. Called once here, for the traits.
  explicit Rule(Make make) : make_(std::move(make)), traits_(make_()->traits()) {}
  const RuleTraits& traits() const { return traits_; }
  std::shared_ptr<Algorithm> make() const { return make_(); }

 private:
  Make make_;
  RuleTraits traits_;
};

/// The rule of a class that Elementwise takes. Each worker gets a copy.
template <class Arithmetic>
Rule elementwise(Arithmetic rule) {
  return Rule([rule] { return std::make_shared<Elementwise<Arithmetic>>(rule); });
}

}  // namespace fast::algorithm
