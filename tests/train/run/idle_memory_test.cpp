#include "train/run/replica.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <fast/core/memory.hpp>

#include "support/catch.hpp"

using namespace fast;

namespace {

/// Whole pages of the buffer that the system holds in memory.
std::ptrdiff_t resident(const AlignedBuffer& buffer) {
  const auto begin = round_up(reinterpret_cast<std::size_t>(buffer.data()), page_bytes);
  const auto end = reinterpret_cast<std::size_t>(buffer.data()) + buffer.size_bytes();
  std::vector<unsigned char> pages((end - begin) / page_bytes);
  REQUIRE(mincore(reinterpret_cast<void*>(begin), pages.size() * page_bytes, pages.data()) == 0);
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}

}  // namespace

TEST_CASE("a model that nobody trains takes no memory until it is written to") {
  constexpr std::size_t pages = 64;
  AlignedBuffer buffer(pages * page_bytes);
  const std::span<float> all = buffer.as<float>();
  std::fill(all.begin(), all.end(), 1.0F);
  const std::span<float> inner = all.subspan(1, all.size() - 2);  // neighbors on both pages stay
  train::release_pages({view_of("inner", inner)});
  CHECK(resident(buffer) <= 2);
  CHECK(all.front() == 1.0F);
  CHECK(all.back() == 1.0F);
  std::fill(inner.begin(), inner.end(), 2.0F);
  CHECK(inner[inner.size() / 2] == 2.0F);
}
