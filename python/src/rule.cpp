// Rules written in Python with NumPy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.hpp"
#include "errors.hpp"
#include "held.hpp"

namespace fast::python {
namespace {

using algorithm::AnyBlock;
using algorithm::RoundInfo;
using algorithm::RuleTraits;
using algorithm::Sweep;

/// Memory of a block's vector that an array in Python has a copy of.
struct Lent {
  const void* place;
  void* written;  ///< where the copy goes back to; null: it is read only
  std::size_t size_bytes;
  const void* copy;
  nb::object array;
};

/// A block as Python sees it, during one call of a rule's method. Its arrays have memory of their
/// own: a rule, or the traceback of an exception, may keep them for longer than the worker lives.
struct BlockView {
  const AnyBlock* block = nullptr;
  std::vector<Lent> lent;

  const AnyBlock& get() const {
    require(block != nullptr, ErrorKind::argument,
            "Rule: a block is valid during the call only; copy what is needed later");
    return *block;
  }
  const RoundInfo& info() const {
    return std::visit([](const auto& b) -> const RoundInfo& { return b.info; }, get());
  }
  void give_back() const {
    for (const Lent& one : lent) {
      if (one.written != nullptr) std::memcpy(one.written, one.copy, one.size_bytes);
    }
  }
};

/// Ends the life of a view, also when the rule raises.
struct Ending {
  explicit Ending(BlockView& view) : view(view) {}
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending() {
    view.block = nullptr;
    view.lent.clear();
  }
  BlockView& view;
};

/// The same object for the same vector, as long as the call lasts.
template <class T>
nb::object array_of(BlockView& view, T* values, std::size_t count) {
  using Value = std::remove_const_t<T>;
  if (values == nullptr) return nb::none();
  for (const Lent& one : view.lent) {
    if (one.place == values) return one.array;
  }
  auto memory = std::make_unique<Value[]>(count);
  std::copy_n(values, count, memory.get());
  Value* copy = memory.get();
  const nb::capsule owner(copy, [](void* kept) noexcept { delete[] static_cast<Value*>(kept); });
  [[maybe_unused]] const Value* owned = memory.release();
  nb::object array =
      nb::ndarray<nb::numpy, T, nb::ndim<1>>(copy, {count}, owner).cast(nb::rv_policy::reference);
  void* written = nullptr;
  if constexpr (!std::is_const_v<T>) written = values;
  view.lent.push_back({values, written, count * sizeof(T), copy, array});
  return array;
}

/// An array for each vector that is there. A tuple: an assignment to an item is an error.
template <class Pointers>
nb::object arrays_of(BlockView& view, const Pointers& vectors, std::size_t count) {
  nb::list arrays;
  for (auto* values : vectors) {
    if (values != nullptr) arrays.append(array_of(view, values, count));
  }
  return nb::tuple(arrays);
}

template <class Part>
auto member(const Part& part) {
  return [part](BlockView& view) {
    return std::visit([&](const auto& block) { return part(view, block); }, view.get());
  };
}

template <class Part>
auto fact(const Part& part) {
  return [part](const BlockView& view) { return part(view.info()); };
}

/// Traits and the texts that they refer to.
struct OwnedTraits {
  std::string name, summary, source, why_exact;
  RuleTraits traits;
};

template <class T>
T attribute(nb::handle rule, const char* name) {
  try {
    return nb::cast<T>(rule.attr(name));
  } catch (const nb::cast_error&) {
    fail(ErrorKind::argument, "Rule: {} has the wrong type: {}", name,
         nb::cast<std::string>(nb::repr(rule.attr(name))));
  }
}

algorithm::MixingRequirement mixing_by_name(const std::string& name) {
  using algorithm::MixingRequirement;
  static const std::vector<std::pair<std::string, MixingRequirement>> all{
      {"anything", MixingRequirement::anything},
      {"doubly_stochastic", MixingRequirement::doubly_stochastic},
      {"symmetric", MixingRequirement::symmetric},
      {"positive", MixingRequirement::positive},
      {"column_stochastic", MixingRequirement::column_stochastic},
      {"matching", MixingRequirement::matching},
      {"complete", MixingRequirement::complete},
      {"unit", MixingRequirement::unit}};
  for (const auto& [known, mixing] : all) {
    if (known == name) return mixing;
  }
  fail(ErrorKind::argument,
       "Rule: mixing \"{}\" is unknown; choose anything, doubly_stochastic, symmetric, positive, "
       "column_stochastic, matching, complete or unit",
       name);
}

int vectors(nb::handle rule, const char* name, int least, int most) {
  const int count = attribute<int>(rule, name);
  require(count >= least && count <= most, ErrorKind::argument,
          "Rule: {} is {}; a number from {} to {} is required", name, count, least, most);
  return count;
}

std::shared_ptr<const OwnedTraits> traits_of(nb::handle rule) {
  auto owned = std::make_shared<OwnedTraits>();
  owned->name = attribute<std::string>(rule, "name");
  owned->summary = attribute<std::string>(rule, "summary");
  owned->source = attribute<std::string>(rule, "source");
  owned->why_exact = attribute<std::string>(rule, "why_exact");
  RuleTraits& d = owned->traits;
  d.name = owned->name;
  d.summary = owned->summary;
  d.source = owned->source;
  d.precision.why_exact = owned->why_exact;
  d.timing.publish_point = attribute<bool>(rule, "publishes_after_step")
                               ? algorithm::PublishPoint::after_step
                               : algorithm::PublishPoint::before_step;
  d.messages.vectors = vectors(rule, "payload_vectors", 1, algorithm::max_payload_vectors);
  d.memory.vectors = vectors(rule, "state_vectors", 0, algorithm::max_state_vectors);
  d.topology.mixing = mixing_by_name(attribute<std::string>(rule, "mixing"));
  d.messages.weights_apart = attribute<bool>(rule, "publishes_weights_apart");
  d.memory.remembers_neighbors = attribute<bool>(rule, "remembers_neighbors");
  d.topology.passes_mass = attribute<bool>(rule, "passes_mass");
  d.topology.needs_static = attribute<bool>(rule, "needs_static_topology");
  d.step.needs_learning_rate = attribute<bool>(rule, "needs_learning_rate");
  d.parameters = nb::cast<std::string>(nb::str(rule.attr("parameters")));
  return owned;
}

class PythonRule final : public algorithm::Algorithm {
 public:
  PythonRule(Held rule, std::shared_ptr<const OwnedTraits> traits)
      : rule_(std::move(rule)), traits_(std::move(traits)) {}

  const RuleTraits& traits() const override { return traits_->traits; }

  void apply(Sweep sweep, const AnyBlock& block) override {
    if (sweep == Sweep::survey) return;
    const nb::gil_scoped_acquire gil;
    const nb::object view = nb::cast(BlockView{&block, {}});
    const Ending ending{nb::cast<BlockView&>(view)};
    rule_.get().attr(method(sweep))(view);
    ending.view.give_back();
  }
  bool begin_publish(const RoundInfo& /*info*/, std::span<double> /*scalars*/) override {
    return true;
  }
  void begin_combine(const RoundInfo& /*info*/, std::span<const double> /*own*/,
                     std::span<const double> /*pull*/) override {}

 private:
  static const char* method(Sweep sweep) {
    if (sweep == Sweep::start) return "start";
    return sweep == Sweep::publish ? "publish" : "combine";
  }

  Held rule_;
  std::shared_ptr<const OwnedTraits> traits_;
};

/// Each worker gets a copy of the object.
algorithm::Rule rule_of(nb::handle object) {
  const Held held(object);
  return algorithm::Rule([held, traits = traits_of(object)]() -> std::shared_ptr<PythonRule> {
    const nb::gil_scoped_acquire gil;
    const nb::object copy = nb::module_::import_("copy").attr("copy")(held.get());
    return std::make_shared<PythonRule>(Held(copy), traits);
  });
}

}  // namespace

void bind_rule(nb::module_& module) {
  nb::class_<BlockView>(
      module, "Block",
      "A run of elements of a worker's vectors, as NumPy arrays. What a rule writes to "
      "them counts during the call only.")
      .def_prop_ro("first", member([](BlockView& /*view*/, const auto& b) { return b.first; }),
                   "Index of the first element among the model's parameters.")
      .def_prop_ro("count", member([](BlockView& /*view*/, const auto& b) { return b.count; }))
      .def_prop_rw(
          "current", member([](auto& v, const auto& b) { return array_of(v, b.current, b.count); }),
          [](nb::handle self, nb::handle values) { self.attr("current")[nb::ellipsis()] = values; },
          "The model: the weights after the worker's own step. combine() leaves the next value "
          "there.")
      .def_prop_ro("own",
                   member([](auto& v, const auto& b) { return arrays_of(v, b.own, b.count); }),
                   "The worker's own publication in force, by payload vector.")
      .def_prop_ro(
          "message",
          member([](auto& v, const auto& b) { return arrays_of(v, b.message, b.count); }),
          "The publication in force as the neighbors see it, by payload vector. pull refers "
          "to it. With a codec it may differ from own.")
      .def_prop_ro("pull",
                   member([](auto& v, const auto& b) { return arrays_of(v, b.pull, b.count); }),
                   "Sum over the neighbors j of W_ij (m_j - m_i), by payload vector.")
      .def_prop_ro("state",
                   member([](auto& v, const auto& b) { return arrays_of(v, b.state, b.count); }),
                   "Memory kept between rounds, zero at first.")
      .def_prop_ro("payload",
                   member([](auto& v, const auto& b) { return arrays_of(v, b.payload, b.count); }),
                   "The publication to fill, in publish() only.")
      .def_prop_ro("round", fact([](const RoundInfo& info) { return info.round; }))
      .def_prop_ro("asynchronous", fact([](const RoundInfo& info) { return info.asynchronous; }),
                   "The staleness bound is above 0.")
      .def_prop_ro("starts_equal", fact([](const RoundInfo& info) { return info.starts_equal; }),
                   "In start() only: all workers have these same weights.")
      .def_prop_ro("restarts", fact([](const RoundInfo& info) { return info.restarts; }),
                   "In start(): in the midst of training. In combine(): start() has just been "
                   "called.")
      .def_prop_ro("learning_rate", fact([](const RoundInfo& info) { return info.learning_rate; }),
                   "Of the step just made; 0 when none was given.")
      .def_prop_ro("self_weight", fact([](const RoundInfo& info) { return info.self_weight; }),
                   "W_ii, with the shares of absent readers if the rule passes mass; in combine() "
                   "only.")
      .def_prop_ro("neighbor_weight",
                   fact([](const RoundInfo& info) { return info.neighbor_weight; }),
                   "Sum of W_ij over the neighbors present, in combine() only.");
  nb::class_<algorithm::Rule>(module, "RuleHandle", "A rule for a Worker.");
  module.def("rule_of", &rule_of, nb::arg("rule"), "A rule of a fast_decentralized.Rule.");

  nb::list names;
  for (const std::string_view name : algorithm::names()) names.append(std::string(name));
  module.attr("algorithm_names") = nb::tuple(names);
}

}  // namespace fast::python
