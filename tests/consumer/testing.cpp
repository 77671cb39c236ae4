#include <fast/testing/conformance.hpp>

int main() {
  const auto report = fast::testing::check_backend(
      [](std::uint64_t) -> std::unique_ptr<fast::Backend> { throw 1; }, {.classes = 2});
  return report.passed() ? 1 : 0;
}
