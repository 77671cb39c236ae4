// What a tar file holds, and where (POSIX.1-2001 pax, ustar and GNU tar).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace fast::data {

struct TarMember {
  std::string name;
  std::size_t at = 0;     ///< of its contents, from the beginning of the archive
  std::size_t bytes = 0;  ///< of its contents
};

/// Hands the regular files of an archive to `take`, in their order. Throws Error(data), which
/// begins with "tar: PATH", when the bytes are no tar archive, truncated, damaged or compressed,
/// and on sparse files.
void for_each_member(std::string_view archive, const std::string& path,
                     const std::function<void(TarMember member)>& take);

}  // namespace fast::data
