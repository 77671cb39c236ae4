#include "fast_serve/metrics.hpp"

#include <fmt/core.h>

#include "support/catch.hpp"

using namespace fast;

namespace {

std::size_t lines_with(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

}  // namespace

TEST_CASE("metrics of versions that are no longer served are added up, and do not grow") {
  serve::Metrics metrics;
  std::set<std::string> served;
  metrics.set_served([&] { return served; });
  std::size_t size = 0;
  for (int reload = 1; reload <= 50; ++reload) {
    const std::string version = fmt::format("v{}", reload);
    served = {version};
    metrics.instances("m", version, 3);
    metrics.pass(version, 3, 0.001);
    metrics.reload("m", true);
    const std::string text = metrics.text();
    CHECK(lines_with(text, fmt::format("version=\"{}\"", version)) > 0);
    if (reload > 2) CHECK(text.size() < size + 200);
    if (reload == 2) size = text.size();
  }
  const std::string text = metrics.text();
  CHECK_THAT(text,
             ContainsSubstring(R"(fast_serve_instances_total{model="m",version="earlier"} 147)"));
  CHECK_THAT(text, ContainsSubstring(R"(fast_serve_instances_total{model="m",version="v50"} 3)"));
  CHECK_THAT(text, ContainsSubstring(R"(fast_serve_passes_total{version="earlier"} 49)"));
  CHECK(lines_with(text, "version=\"v49\"") == 0);
  CHECK(lines_with(text, "fast_serve_pass_samples_count") == 1);
  CHECK_THAT(text,
             ContainsSubstring(R"(fast_serve_reloads_total{model="m",result="installed"} 50)"));
}

TEST_CASE("a pass of a version that has just been replaced is counted too") {
  serve::Metrics metrics;
  std::set<std::string> served{"new"};
  metrics.set_served([&] { return served; });
  for (int i = 0; i < 3; ++i) {
    metrics.pass("old", 1, 0.001);
    metrics.text();
  }
  CHECK_THAT(metrics.text(), ContainsSubstring(R"(fast_serve_passes_total{version="earlier"} 3)"));
}
