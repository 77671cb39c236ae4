#include <fmt/ranges.h>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>

#include "codec/record.hpp"
#include "core/closest.hpp"

namespace fast::codec {
namespace {

struct Entry {
  std::string_view name, stochastic_name;
  const Record* record;
};
/// By Kind.
constexpr Entry entries[] = {
#define FAST_ROW(name) {#name, #name "_stochastic", &records::name},
#include "codec/rows.inc"
#undef FAST_ROW
};

constexpr bool is_row(Kind kind, std::string_view name) {
  return entries[static_cast<std::size_t>(kind)].name == name;
}
static_assert(is_row(Kind::identity, "identity") && is_row(Kind::bf16, "bf16") &&
              is_row(Kind::fp16, "fp16") && is_row(Kind::int8, "int8") &&
              is_row(Kind::f64, "f64") && is_row(Kind::sparse, "sparse") &&
              is_row(Kind::selected, "selected"));

/// visit(name, options) of all that a user may choose.
template <class Visit>
void for_each(const Visit& visit) {
  for (std::size_t row = 0; row < std::size(entries); ++row) {
    const Entry& entry = entries[row];
    if (!entry.record->for_users) continue;
    visit(entry.name, Options{.kind = static_cast<Kind>(row)});
    if (entry.record->stochastic) {
      visit(entry.stochastic_name, Options{.kind = static_cast<Kind>(row), .stochastic = true});
    }
  }
}

}  // namespace

const Record& record_of(Kind kind) {
  const auto row = static_cast<std::size_t>(kind);
  require(row < std::size(entries), ErrorKind::internal, "codec: there is no kind {}", row);
  return *entries[row].record;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for_each([&](std::string_view name, const Options&) { all.push_back(name); });
  return all;
}

Options by_name(std::string_view name) {
  std::optional<Options> found;
  for_each([&](std::string_view known, const Options& options) {
    if (known == name) found = options;
  });
  require(found.has_value(), ErrorKind::argument, "codec: \"{}\" is unknown; choose one of {}{}",
          name, fmt::join(names(), ", "), did_you_mean(name, names()));
  return *found;
}

std::string name(const Options& options) {
  std::string found;
  for_each([&](std::string_view name, const Options& known) {
    if (known.kind == options.kind && known.stochastic == options.stochastic) found = name;
  });
  require(!found.empty(), ErrorKind::argument,
          "codec: no {} rounding of this kind; choose one of {}",
          options.stochastic ? "stochastic" : "nearest", fmt::join(names(), ", "));
  return found;
}

int bits(Kind kind) {
  const Record& record = record_of(kind);
  if (record.coded_bytes == nullptr) return 8 * static_cast<int>(sizeof(float));
  constexpr std::size_t many = 1 << 20;
  return static_cast<int>(8 * record.coded_bytes(many) / many);
}

}  // namespace fast::codec
