#include <fast/train/shared_data.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/descriptor.hpp"
#include "data/packed.hpp"

namespace fast::train {
namespace {

constexpr std::size_t token_bytes = 16;

/// A file's pages in this process's memory; empty when they cannot be mapped.
std::span<std::byte> map(const Descriptor& file, std::size_t bytes, int protection) {
  void* begin = mmap(nullptr, bytes, protection, MAP_SHARED, file.get(), 0);
  if (begin == MAP_FAILED) return {};
  return {static_cast<std::byte*>(begin), bytes};
}

std::shared_ptr<const void> unmapped_at_end(std::span<std::byte> pages) {
  return {pages.data(), [bytes = pages.size()](void* begin) { munmap(begin, bytes); }};
}

/// The memory that a worker offers, as text for all_gather(): the process, its descriptor, the size
/// and a token at the beginning of the memory.
struct Offer {
  long process = 0;
  int fd = -1;
  std::size_t bytes = 0;
  std::string token;

  std::string text() const { return fmt::format("{} {} {} ", process, fd, bytes) + token; }
};

Offer offer_from(const std::string& text) {
  Offer offer;
  const char *at = text.data(), *end = at + text.size();
  const auto number = [&](auto& value) {
    at = std::from_chars(at, end, value).ptr;
    if (at != end) ++at;
  };
  number(offer.process);
  number(offer.fd);
  number(offer.bytes);
  offer.token.assign(at, end);
  return offer;
}

std::string new_token() {
  std::random_device random;
  std::string token;
  while (token.size() < token_bytes) token += fmt::format("{:08x}", random());
  return token.substr(0, token_bytes);
}

/// Data sets in anonymous memory that other processes can open.
struct Shared {
  Descriptor file;
  Offer offer;
  data::Splits splits;
};

/// Empty when the system has no such memory.
std::optional<Shared> share(const data::Splits& splits) {
  const std::size_t bytes = cache_line_bytes + data::packed_bytes(splits);
  Shared shared;
  shared.file = Descriptor(memfd_create("fast-data", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!shared.file.is_open() ||
      posix_fallocate(shared.file.get(), 0, static_cast<off_t>(bytes)) != 0)
    return std::nullopt;
  const std::string token = new_token();
  {
    const std::span<std::byte> pages = map(shared.file, bytes, PROT_READ | PROT_WRITE);
    if (pages.empty()) return std::nullopt;
    const auto keep = unmapped_at_end(pages);
    std::memcpy(pages.data(), token.data(), token_bytes);
    data::pack(splits, pages.subspan(cache_line_bytes));
  }
  fcntl(shared.file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  const std::span<std::byte> pages = map(shared.file, bytes, PROT_READ);
  if (pages.empty()) return std::nullopt;
  shared.splits = data::unpack(pages.subspan(cache_line_bytes), unmapped_at_end(pages));
  shared.offer = {getpid(), shared.file.get(), bytes, token};
  return shared;
}

/// Empty when the memory cannot be opened from here or has another token.
std::optional<data::Splits> take(const Offer& offer) {
  if (offer.fd < 0) return std::nullopt;
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.process, offer.fd);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found {};
  if (!file.is_open() || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode) ||
      found.st_size != static_cast<off_t>(offer.bytes)) {
    return std::nullopt;
  }
  const std::span<std::byte> pages = map(file, offer.bytes, PROT_READ);
  if (pages.empty()) return std::nullopt;
  const auto keep = unmapped_at_end(pages);
  if (std::memcmp(pages.data(), offer.token.data(), token_bytes) != 0) return std::nullopt;
  return data::unpack(pages.subspan(cache_line_bytes), keep);
}

/// The lowest rank on this rank's host that loads the same source.
std::size_t leader_of(const Group& group, const std::vector<std::string>& sources) {
  const std::vector<int> hosts = group.hosts();
  const auto rank = static_cast<std::size_t>(group.rank());
  std::size_t leader = 0;
  while (hosts[leader] != hosts[rank] || sources[leader] != sources[rank]) ++leader;
  return leader;
}

bool is_shared(const std::vector<std::string>& sources, const Group& group, std::size_t rank) {
  const std::vector<int> hosts = group.hosts();
  std::size_t count = 0;
  for (std::size_t other = 0; other < sources.size(); ++other)
    count += hosts[other] == hosts[rank] && sources[other] == sources[rank] ? 1 : 0;
  return count > 1;
}

}  // namespace

data::Splits load_once_a_host(const Group& group, std::string_view source, const Deadline& deadline,
                              const std::function<data::Splits()>& load) {
  constexpr std::string_view purpose = "loading data";
  const std::vector<std::string> sources = group.all_gather(source, deadline, purpose);
  const auto rank = static_cast<std::size_t>(group.rank());
  const std::size_t leader = leader_of(group, sources);
  std::optional<data::Splits> splits;
  std::optional<Shared> shared;
  agree(group, deadline, purpose, [&] {
    if (leader != rank) return;
    splits = load();
    const bool in_memory = !splits->train.is_streamed() && !splits->test.is_streamed();
    if (in_memory && is_shared(sources, group, rank)) shared = share(*splits);
    if (shared) splits = shared->splits;
  });
  const std::vector<std::string> offers =
      group.all_gather(shared ? shared->offer.text() : Offer{}.text(), deadline, purpose);
  // The descriptor stays open until all workers have mapped the memory.
  agree(group, deadline, purpose, [&] {
    if (leader != rank) splits = take(offer_from(offers[leader]));
    if (!splits) splits = load();
  });
  return *splits;
}

}  // namespace fast::train
