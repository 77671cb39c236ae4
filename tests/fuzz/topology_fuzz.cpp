// Topology files of any content are accepted or refused with fast::Error; nothing else happens.
#include <cstddef>
#include <cstdint>
#include <fast/core/error.hpp>
#include <fast/mixing/check.hpp>
#include <fast/topology/load.hpp>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* path : {"fuzz.toml", "fuzz.mtx"}) {
    try {
      const fast::TopologyRule rule = fast::parse_topology(text, path);
      const int workers = rule.natural_workers() == 0 ? 6 : rule.natural_workers();
      if (workers <= 64) fast::check_mixing(rule.make(workers));
    } catch (const fast::Error&) {
    }
  }
  return 0;
}
