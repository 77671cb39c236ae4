#include <fmt/ranges.h>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>

namespace fast::codec {
namespace {

struct Entry {
  std::string_view name;
  Kind kind;
  bool stochastic;
};
constexpr Entry entries[] = {
    {"identity", Kind::identity, false},   {"bf16", Kind::bf16, false},
    {"bf16_stochastic", Kind::bf16, true}, {"fp16", Kind::fp16, false},
    {"int8", Kind::int8, false},           {"int8_stochastic", Kind::int8, true},
};

}  // namespace

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Entry& entry : entries) all.push_back(entry.name);
  return all;
}

Options by_name(std::string_view name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return {.kind = entry.kind, .stochastic = entry.stochastic};
  }
  fail(ErrorKind::argument, "codec: \"{}\" is unknown; choose one of {}", name,
       fmt::join(names(), ", "));
}

std::string name(const Options& options) {
  for (const Entry& entry : entries) {
    if (entry.kind == options.kind && entry.stochastic == options.stochastic) {
      return std::string(entry.name);
    }
  }
  fail(ErrorKind::argument, "codec: no {} rounding of this kind; choose one of {}",
       options.stochastic ? "stochastic" : "nearest", fmt::join(names(), ", "));
}

}  // namespace fast::codec
