// What sites send each other: one line of JSON, and bytes after it.
#pragma once

#include <fast/core/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::sites {

inline constexpr int wire_format = 4;
inline constexpr std::size_t chunk_bytes = 64 * 1024;
/// Of a message: a chunk and the line ahead of it.
inline constexpr std::size_t most_message_bytes = chunk_bytes + 1024;
/// Chunks that one request asks for, at most.
inline constexpr std::size_t most_asked = 16;
/// Rounds and exchanges that are counted, at most: sums of them do not overflow.
inline constexpr std::int64_t most_counted = std::int64_t{1} << 53;
/// What a step counts, at most.
inline constexpr double most_samples = 1e12;

/// What a publication is of.
enum class Content {
  message,  ///< what an exchange takes
  state,    ///< weights and the outer rule's memory, for a site that joins
};

/// What is said of a publication ahead of its bytes. The content under (site, incarnation, content,
/// number) never changes.
struct Publication {
  Content content = Content::message;
  std::int64_t number = -1;  ///< of the exchange it is for; of a state: of the next exchange
  std::int64_t round = 0;    ///< rounds of the site when it was made
  double samples = 1;
  std::string view;        ///< SHA-256 of the names of the sites that its site saw
  std::int64_t base = -1;  ///< of a difference: the message that it is to be added to; -1: whole
  std::uint64_t bytes = 0;
  std::string sha256;  ///< hash_of_chunks()
  bool operator==(const Publication&) const = default;

  std::size_t chunks() const { return (bytes + chunk_bytes - 1) / chunk_bytes; }
  std::size_t chunk_size(std::size_t index) const;
};

/// A site says this again and again, and at once when something has changed.
struct Status {
  std::string run, site;
  std::uint64_t incarnation = 0;
  std::string about;                ///< model and options: equal in all sites of a run
  bool begun = false;               ///< it trains
  bool leaving = false;             ///< it makes no exchange any more
  std::int64_t first = 0;           ///< the first exchange that it makes, since it has begun
  std::int64_t next = 0;            ///< the next exchange that it will make
  std::int64_t round = 0;           ///< rounds that it has made
  std::vector<Publication> newest;  ///< what it holds, see Node::publish()
  /// Incarnations of the sites that it has heard of: each believes what is said of itself, to begin
  /// with a later one.
  std::vector<std::pair<std::string, std::uint64_t>> known;
  /// Of those that it has forgotten but for this.
  std::vector<std::pair<std::string, std::uint64_t>> former{};
};

/// Asks for chunks [first, first + count) of a publication.
struct ChunkRequest {
  std::string reader;
  std::uint64_t incarnation = 0;  ///< of the site that is asked
  Content content = Content::message;
  std::int64_t number = 0;
  std::size_t first = 0, count = 0;
  std::int64_t sent_us = 0;  ///< by the reader's clock of timelines
};

/// A chunk of a publication; `gone`: the site does not hold it any more.
struct Chunk {
  std::string site;
  std::uint64_t incarnation = 0;
  Content content = Content::message;
  std::int64_t number = 0;
  std::size_t index = 0;
  bool gone = false;
  std::string sha256;  ///< of these bytes
  std::span<const std::byte> bytes;
  std::int64_t asked_us = 0;               ///< sent_us of the request
  std::int64_t heard_us = 0, sent_us = 0;  ///< by this site's clock
};

std::string encode(const Status& status);
std::string encode(const ChunkRequest& request);
std::string encode(const Chunk& chunk);
/// Asks a site to publish its state, or to publish its next message whole.
std::string encode(Content wish);
/// None: it is not such a message, of another format, or has a value that is out of range. `bytes`
/// refer to `text`.
std::optional<Status> decode_status(std::string_view text);
std::optional<ChunkRequest> decode_request(std::string_view text);
std::optional<Chunk> decode_chunk(std::string_view text);
std::optional<Content> decode_wish(std::string_view text);
/// The format of a message, if it is another one than wire_format.
std::optional<std::int64_t> other_format(std::string_view text);

/// 1 to 40 letters, digits, '-' and '_'.
bool is_site_name(std::string_view name);

/// In hexadecimal digits.
std::string sha256_of(std::span<const std::byte> bytes);
/// Of each chunk of a publication with these bytes.
std::vector<std::string> chunk_hashes(std::span<const std::byte> bytes);
/// Of a publication with such chunks: the SHA-256 of their hashes, as text, one after the other.
std::string hash_of_chunks(const std::vector<std::string>& hashes);

}  // namespace fast::sites
