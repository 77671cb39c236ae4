// Data sets as one block of bytes, for memory that several processes of a host map.
#pragma once

#include <fast/data/load.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace fast::data {

/// Bytes that pack() writes.
std::size_t packed_bytes(const Splits& splits);

/// Writes both parts and the normalization, for programs of the same build on the same host.
void pack(const Splits& splits, std::span<std::byte> to);

/// Data sets that lie in `from`, which `owner` keeps; no copy is made. Throws Error(data) when
/// pack() did not write it.
Splits unpack(std::span<const std::byte> from, const std::shared_ptr<const void>& owner);

}  // namespace fast::data
