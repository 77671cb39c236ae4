// The outer rule of a site: what it forgets, and what it takes over.
#include "sites/outer_step.hpp"

#include <fast/algorithm/rules.hpp>
#include <fast/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::sites;

namespace {

/// Makes steps and outer steps alone.
struct Lone {
  std::vector<double> x;
  ParameterLayout layout;
  OuterStep outer;
  std::int64_t number = 0;

  Lone(std::vector<double> values, const algorithm::Rule& rule)
      : x(std::move(values)), layout({view_of("x", std::span(x))}), outer(layout, rule) {
    outer.start(layout);
  }
  void exchange() {
    for (std::size_t e = 0; e < x.size(); ++e) x[e] += 0.3 * static_cast<double>(e) - 0.1 * x[e];
    outer.publish(layout, number);
    outer.combine(layout, number, {}, 1);
    ++number;
  }
};

std::vector<double> drawn() {
  Rng rng(3);
  std::vector<double> values;
  for (int e = 0; e < 300; ++e) values.push_back(rng.normal());
  return values;
}

algorithm::Rule drawn_rule() {
  return GENERATE(algorithm::gasloc({.rate = 0.8, .acceleration = 0.5}), algorithm::noloco({}),
                  algorithm::diloco({.rate = 0.7, .momentum = 0.9}));
}

}  // namespace

TEST_CASE("an outer rule without its momentum goes on as if it began with its weights") {
  const algorithm::Rule rule = drawn_rule();
  INFO(rule.traits().name);
  Lone one(drawn(), rule), other(drawn(), rule);
  for (int k = 0; k < 4; ++k) one.exchange();
  other.x = one.x;
  other.outer.start(other.layout);
  one.outer.forget_momentum();
  for (int k = 0; k < 3; ++k) {
    one.exchange();
    other.exchange();
    CHECK(one.x == other.x);
  }
}

TEST_CASE("while an exchange is under way, a state is that after the exchange before") {
  const algorithm::Rule rule = drawn_rule();
  INFO(rule.traits().name);
  Lone one(drawn(), rule), other(drawn(), rule);
  for (int k = 0; k < 3; ++k) one.exchange();
  const std::vector<double> after = one.x;
  const auto before = one.outer.state();
  for (double& value : one.x) value += 1;
  one.outer.publish(one.layout, one.number);
  other.outer.adopt(other.layout, *one.outer.state());
  CHECK(other.x == after);
  CHECK(other.outer.is_finite_state(*before));
  for (const std::size_t at : {std::size_t{0}, before->size_bytes() / 2}) {  // weights, memory
    AlignedBuffer damaged(before->size_bytes());
    std::ranges::copy(before->as<std::byte>(), damaged.data());
    std::ranges::fill(damaged.as<double>().subspan(at / sizeof(double), 1), NAN);
    CHECK_FALSE(other.outer.is_finite_state(damaged));
  }
}

TEST_CASE("an outer rule takes over a saved memory, and begins anew without one that fits") {
  const algorithm::Rule rule = drawn_rule();
  INFO(rule.traits().name);
  Lone one(drawn(), rule), same(drawn(), rule), anew(drawn(), rule), started(drawn(), rule);
  for (int k = 0; k < 4; ++k) one.exchange();
  for (Lone* lone : {&same, &anew, &started}) {
    lone->x = one.x;
    lone->outer.start(lone->layout);
    lone->number = one.number;
  }
  std::vector<TensorView> saved = one.outer.memory();
  CHECK(same.outer.take_memory(saved));
  const algorithm::Rule another =
      rule.traits().name == "noloco" ? algorithm::diloco({.period = 50}) : algorithm::noloco({});
  CHECK_FALSE(Lone(drawn(), another).outer.take_memory(saved));
  saved.pop_back();
  CHECK_FALSE(anew.outer.take_memory(saved));
  for (int k = 0; k < 3; ++k) {
    for (Lone* lone : {&one, &same, &anew, &started}) lone->exchange();
    CHECK(same.x == one.x);
    CHECK(anew.x == started.x);
    CHECK(anew.x != one.x);
  }
}
