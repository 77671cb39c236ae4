#include <fmt/ranges.h>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>

#include "codec/block.hpp"
#include "core/registry.hpp"

namespace fast::codec {
namespace {

/// By Kind.
constexpr Named<const Record*> entries[] = {
    {"identity", &records::identity}, {"bf16", &records::bf16},   {"fp16", &records::fp16},
    {"int8", &records::int8},         {"f64", &records::f64},     {"sparse", &records::sparse},
    {"selected", &records::selected}, {"int4", &records::int4},   {"int2", &records::int2},
    {"qsgd4", &records::qsgd4},       {"qsgd2", &records::qsgd2},
};

constexpr bool is_row(Kind kind, std::string_view name) {
  return entries[static_cast<std::size_t>(kind)].name == name;
}
static_assert(is_row(Kind::identity, "identity") && is_row(Kind::bf16, "bf16") &&
              is_row(Kind::fp16, "fp16") && is_row(Kind::int8, "int8") &&
              is_row(Kind::f64, "f64") && is_row(Kind::sparse, "sparse") &&
              is_row(Kind::selected, "selected"));

struct Choice {
  std::string name;
  Options options;
};

/// All that a user may choose.
std::vector<Choice> make_choices() {
  std::vector<Choice> all;
  for (std::size_t row = 0; row < std::size(entries); ++row) {
    const auto& [name, record] = entries[row];
    const auto kind = static_cast<Kind>(row);
    if (!record->for_users) continue;
    all.push_back({std::string(name), {.kind = kind, .stochastic = record->random}});
    if (record->stochastic)
      all.push_back({fmt::format("{}_stochastic", name), {.kind = kind, .stochastic = true}});
  }
  return all;
}

Registry<Choice> registry() {
  static const std::vector<Choice> choices = make_choices();
  return {choices, "codec: \"{}\" is unknown; choose one of {}"};
}

}  // namespace

const Record& record_of(Kind kind) {
  const auto row = static_cast<std::size_t>(kind);
  require(row < std::size(entries), ErrorKind::internal, "codec: there is no kind {}", row);
  return *entries[row].value;
}

std::vector<std::string_view> names() { return registry().names(); }

Options by_name(std::string_view name) { return registry().at(name).options; }

std::string name(const Options& options) {
  for (const auto& [name, known] : registry().entries) {
    const bool fits = known.stochastic == options.stochastic || record_of(known.kind).random;
    if (known.kind == options.kind && fits) return name;
  }
  fail(ErrorKind::argument, "codec: no {} rounding of this kind; choose one of {}",
       options.stochastic ? "stochastic" : "nearest", fmt::join(names(), ", "));
}

int bits(Kind kind) {
  const Record& record = record_of(kind);
  if (record.coded_bytes == nullptr) return 8 * static_cast<int>(sizeof(float));
  constexpr std::size_t many = 1 << 20;
  return static_cast<int>(8 * record.coded_bytes(many) / many);
}

}  // namespace fast::codec
