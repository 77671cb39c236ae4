// Bodies of prediction requests of any content are read or refused; nothing else happens. The first
// byte chooses the way: JSON, or raw values with a shape in the first line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fast_serve/request_parser.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fast::serve::InputForm form{{1, 2, 2}, 8};
  std::string_view body(reinterpret_cast<const char*>(data), size);
  if (body.empty()) return 0;
  const char way = body.front();
  try {
    if (way == '{' || way == '[') {
      fast::serve::parse_json(body, form);
    } else {
      body.remove_prefix(1);
      const std::size_t line = std::min(body.find('\n'), body.size());
      fast::serve::parse_raw(
          body.substr(std::min(line + 1, body.size())), form,
          way == 'u' ? fast::serve::ElementType::u8 : fast::serve::ElementType::f32,
          body.substr(0, line));
    }
  } catch (const fast::serve::Refusal& refusal) {
    if (refusal.status() < 400 || refusal.status() > 499) __builtin_trap();
  }
  return 0;
}
