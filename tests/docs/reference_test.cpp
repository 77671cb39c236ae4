// The tables of docs/reference have all names that the programs accept.
#include <fast/algorithm/rules.hpp>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/topology/load.hpp>

#include <cctype>

#include "support/catch.hpp"
#include "support/contents.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

std::string page(const std::string& name) {
  return contents(std::string(FAST_SOURCE_DIR "/docs/reference/") + name);
}

std::string as_code(std::string_view name) { return fmt::format("`{}`", name); }

/// The type of a layer: GlobalAveragePool of global_average_pool.
std::string type_of(std::string_view layer) {
  std::string type;
  bool begins = true;
  for (const char c : layer) {
    if (c != '_') type += begins ? static_cast<char>(std::toupper(c)) : c;
    begins = c == '_';
  }
  return type;
}

}  // namespace

TEST_CASE("docs/reference/algorithms.md names every rule") {
  for (const auto name : algorithm::names()) {
    CHECK_THAT(page("algorithms.md"), Contains(as_code(name)));
  }
}

TEST_CASE("docs/reference/topologies.md names every topology") {
  for (const TopologyName& known : topology_names()) {
    CHECK_THAT(page("topologies.md"), Contains(as_code(known.name)));
  }
}

TEST_CASE("docs/reference/codecs.md names every codec") {
  for (const auto name : codec::names()) CHECK_THAT(page("codecs.md"), Contains(as_code(name)));
}

TEST_CASE("docs/reference/layers.md names every layer") {
  for (const auto name : nn::layer_names())
    CHECK_THAT(page("layers.md"), Contains(fmt::format("| `{}{{", type_of(name))));
}
