#include "sites/wire.hpp"

#include <fast/core/error.hpp>

#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fast::sites {
namespace {

using Json = nlohmann::json;

constexpr std::string_view content_names[] = {"message", "state"};

void require_value(bool holds) {
  if (!holds) throw std::out_of_range("a value of a message");
}

std::string name_in(const Json& json, const char* key) {
  auto name = json.at(key).get<std::string>();
  require_value(is_site_name(name));
  return name;
}

/// Conversions of other numbers may not be defined.
std::int64_t integer_in(const Json& json, const char* key, std::int64_t least) {
  require_value(json.at(key).is_number_integer());
  const auto value = json.at(key).get<std::int64_t>();
  require_value(value >= least && value <= most_counted);
  return value;
}

std::int64_t count_in(const Json& json, const char* key) { return integer_in(json, key, 0); }

std::uint64_t incarnation_of(const Json& value) {
  require_value(value.is_number_unsigned());
  return value.get<std::uint64_t>();
}

std::string_view name_of(Content content) {
  return content_names[static_cast<std::size_t>(content)];
}

Content content_of(const Json& json) {
  const auto name = json.at("content").get<std::string>();
  if (name == name_of(Content::message)) return Content::message;
  if (name == name_of(Content::state)) return Content::state;
  throw std::invalid_argument("content");
}

Json json_of(const Publication& publication) {
  return {{"content", name_of(publication.content)},
          {"number", publication.number},
          {"round", publication.round},
          {"samples", publication.samples},
          {"view", publication.view},
          {"base", publication.base},
          {"bytes", publication.bytes},
          {"sha256", publication.sha256}};
}

Publication publication_of(const Json& json) {
  Publication result;
  result.content = content_of(json);
  result.number = count_in(json, "number");
  result.round = count_in(json, "round");
  json.at("samples").get_to(result.samples);
  require_value(result.samples > 0 && result.samples <= most_samples);
  json.at("view").get_to(result.view);
  result.base = integer_in(json, "base", -1);
  require_value(result.base < result.number);
  result.bytes = static_cast<std::uint64_t>(count_in(json, "bytes"));
  json.at("sha256").get_to(result.sha256);
  return result;
}

std::string line_of(Json json) {
  json["format"] = wire_format;
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

/// Calls `read` with the first line's JSON and the bytes after it.
template <class Result, class Read>
std::optional<Result> decoded(std::string_view text, const Read& read) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  try {
    const Json json = Json::parse(text.substr(0, end));
    if (json.at("format") != wire_format) return std::nullopt;
    return read(json, text.substr(end + 1));
  } catch (const std::exception&) {  // of the JSON library, and of what it lacks
    return std::nullopt;
  }
}

}  // namespace

std::size_t Publication::chunk_size(std::size_t index) const {
  const std::uint64_t begin = std::min<std::uint64_t>(index * chunk_bytes, bytes);
  return static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, bytes - begin));
}

std::string encode(const Status& status) {
  Json newest = Json::array();
  for (const Publication& publication : status.newest) newest.push_back(json_of(publication));
  const auto object_of = [](const auto& incarnations) {
    Json object = Json::object();
    for (const auto& [site, incarnation] : incarnations) object[site] = incarnation;
    return object;
  };
  return line_of({{"run", status.run},
                  {"site", status.site},
                  {"incarnation", status.incarnation},
                  {"about", status.about},
                  {"begun", status.begun},
                  {"leaving", status.leaving},
                  {"first", status.first},
                  {"next", status.next},
                  {"round", status.round},
                  {"newest", newest},
                  {"known", object_of(status.known)},
                  {"former", object_of(status.former)}});
}

std::string encode(const ChunkRequest& request) {
  return line_of({{"reader", request.reader},
                  {"incarnation", request.incarnation},
                  {"content", name_of(request.content)},
                  {"number", request.number},
                  {"first", request.first},
                  {"count", request.count},
                  {"sent_us", request.sent_us}});
}

std::string encode(const Chunk& chunk) {
  std::string text = line_of({{"site", chunk.site},
                              {"incarnation", chunk.incarnation},
                              {"content", name_of(chunk.content)},
                              {"number", chunk.number},
                              {"index", chunk.index},
                              {"gone", chunk.gone},
                              {"asked_us", chunk.asked_us},
                              {"heard_us", chunk.heard_us},
                              {"sent_us", chunk.sent_us},
                              {"sha256", chunk.sha256}});
  text.append(reinterpret_cast<const char*>(chunk.bytes.data()), chunk.bytes.size());
  return text;
}

std::string encode(Content wish) { return line_of({{"content", name_of(wish)}}); }

std::optional<Content> decode_wish(std::string_view text) {
  return decoded<Content>(text,
                          [](const Json& json, std::string_view) { return content_of(json); });
}

std::optional<Status> decode_status(std::string_view text) {
  return decoded<Status>(text, [](const Json& json, std::string_view) {
    Status status;
    json.at("run").get_to(status.run);
    status.site = name_in(json, "site");
    status.incarnation = incarnation_of(json.at("incarnation"));
    json.at("about").get_to(status.about);
    json.at("begun").get_to(status.begun);
    json.at("leaving").get_to(status.leaving);
    status.first = count_in(json, "first");
    status.next = count_in(json, "next");
    status.round = count_in(json, "round");
    for (const Json& publication : json.at("newest"))
      status.newest.push_back(publication_of(publication));
    for (const auto& [site, incarnation] : json.at("known").items())
      status.known.emplace_back(site, incarnation_of(incarnation));
    for (const auto& [site, incarnation] : json.at("former").items())
      status.former.emplace_back(site, incarnation_of(incarnation));
    return status;
  });
}

std::optional<std::int64_t> other_format(std::string_view text) {
  try {
    const auto format = integer_in(Json::parse(text.substr(0, text.find('\n'))), "format", 0);
    return format == wire_format ? std::nullopt : std::optional(format);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<ChunkRequest> decode_request(std::string_view text) {
  return decoded<ChunkRequest>(text, [](const Json& json, std::string_view) {
    ChunkRequest request;
    request.reader = name_in(json, "reader");
    request.incarnation = incarnation_of(json.at("incarnation"));
    request.content = content_of(json);
    request.number = count_in(json, "number");
    request.first = static_cast<std::size_t>(count_in(json, "first"));
    request.count = static_cast<std::size_t>(count_in(json, "count"));
    request.sent_us = count_in(json, "sent_us");
    return request;
  });
}

std::optional<Chunk> decode_chunk(std::string_view text) {
  return decoded<Chunk>(text, [](const Json& json, std::string_view rest) {
    Chunk chunk;
    chunk.site = name_in(json, "site");
    chunk.incarnation = incarnation_of(json.at("incarnation"));
    chunk.content = content_of(json);
    chunk.number = count_in(json, "number");
    chunk.index = static_cast<std::size_t>(count_in(json, "index"));
    json.at("gone").get_to(chunk.gone);
    chunk.asked_us = count_in(json, "asked_us");
    chunk.heard_us = count_in(json, "heard_us");
    chunk.sent_us = count_in(json, "sent_us");
    json.at("sha256").get_to(chunk.sha256);
    chunk.bytes = std::as_bytes(std::span(rest));
    return chunk;
  });
}

bool is_site_name(std::string_view name) {
  constexpr std::size_t most = 40;
  return !name.empty() && name.size() <= most && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

std::string sha256_of(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const int done = EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  require(done == 1, ErrorKind::internal, "sites: the SHA-256 of {} bytes failed", bytes.size());
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::vector<std::string> chunk_hashes(std::span<const std::byte> bytes) {
  std::vector<std::string> hashes;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(chunk_bytes, bytes.size())))
    hashes.push_back(sha256_of(bytes.first(std::min(chunk_bytes, bytes.size()))));
  return hashes;
}

std::string hash_of_chunks(const std::vector<std::string>& hashes) {
  const std::string text = fmt::format("{}", fmt::join(hashes, ""));
  return sha256_of(std::as_bytes(std::span(text)));
}

}  // namespace fast::sites
