// Model files of any content are read or refused with fast::Error; nothing else happens.
#include <cstddef>
#include <cstdint>
#include <fast/core/error.hpp>
#include <fast/train/safetensors.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fast::train::parse_safetensors(std::as_bytes(std::span(data, size)), size, "fuzz.safetensors");
  } catch (const fast::Error&) {
  }
  return 0;
}
