#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <string>

#include "data/packed.hpp"

namespace fast::data {
namespace {

constexpr std::uint64_t magic = 0x32617461'64747366;  // "fstdata2"

/// Goes through the block; each piece begins at a multiple of a cache line. Writes where there is
/// memory, else counts.
class Writer {
 public:
  explicit Writer(std::span<std::byte> to = {}) : to_(to) {}

  template <class T>
  void array(std::span<const T> values) {
    number(values.size());
    if (!to_.empty() && !values.empty()) {
      std::memcpy(to_.data() + at_, values.data(), values.size_bytes());
    }
    at_ += round_up(values.size_bytes(), cache_line_bytes);
  }
  void number(std::uint64_t value) {
    if (!to_.empty()) std::memcpy(to_.data() + at_, &value, sizeof value);
    at_ += cache_line_bytes;
  }
  std::size_t bytes() const { return at_; }

 private:
  std::span<std::byte> to_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) : from_(from) {}

  template <class T>
  std::span<const T> array() {
    const std::uint64_t count = number();
    demand(count <= (from_.size() - at_) / sizeof(T));
    const auto* first = reinterpret_cast<const T*>(from_.data() + at_);
    at_ += std::min(round_up(count * sizeof(T), cache_line_bytes), from_.size() - at_);
    return {first, count};
  }
  std::uint64_t number() {
    demand(from_.size() - at_ >= cache_line_bytes);
    std::uint64_t value = 0;
    std::memcpy(&value, from_.data() + at_, sizeof value);
    at_ += cache_line_bytes;
    return value;
  }
  void demand(bool holds) const {
    require(holds, ErrorKind::data,
            "data: {} bytes of shared memory hold no data set that was packed", from_.size());
  }

 private:
  std::span<const std::byte> from_;
  std::size_t at_ = 0;
};

void write(const Dataset& data, Writer& to) {
  to.array(std::span<const char>(data.name()));
  to.array(std::span<const std::int64_t>(data.sample_shape()));
  to.number(static_cast<std::uint64_t>(data.classes()));
  to.array(std::span<const std::int64_t>(data.target_shape()));
  to.array(data.labels());
  to.array(data.targets());
  const auto values = data.values();
  to.number(values.index());
  std::visit([&](const auto& all) { to.array(all); }, values);
}

Dataset read(Reader& from, const std::shared_ptr<const void>& owner) {
  const std::span<const char> name = from.array<char>();
  const std::span<const std::int64_t> shape = from.array<std::int64_t>();
  const auto classes = static_cast<int>(from.number());
  const std::span<const std::int64_t> target_shape = from.array<std::int64_t>();
  Dataset::Borrowed memory;
  memory.owner = owner;
  memory.target_shape.assign(target_shape.begin(), target_shape.end());
  memory.labels = from.array<std::int32_t>();
  memory.targets = from.array<float>();
  if (from.number() == 0) {
    memory.values = from.array<std::uint8_t>();
  } else {
    memory.values = from.array<float>();
  }
  if (memory.labels.empty() && memory.targets.empty()) return {};
  return {{name.begin(), name.end()}, {shape.begin(), shape.end()}, std::move(memory), classes};
}

void write(const std::vector<std::string>& texts, Writer& to) {
  to.number(texts.size());
  for (const std::string& text : texts) to.array(std::span<const char>(text));
}

std::vector<std::string> read_texts(Reader& from) {
  std::vector<std::string> texts;
  for (std::uint64_t left = from.number(); left > 0; --left) {
    const std::span<const char> text = from.array<char>();
    texts.emplace_back(text.begin(), text.end());
  }
  return texts;
}

void write(const Splits& splits, Writer& to) {
  to.number(magic);
  write(splits.train, to);
  write(splits.test, to);
  to.array(std::span<const float>(splits.normalization.mean));
  to.array(std::span<const float>(splits.normalization.stddev));
  to.array(std::span<const double>(splits.normalization.origins));
  to.array(std::span<const float>(splits.normalization.target_mean));
  to.array(std::span<const float>(splits.normalization.target_stddev));
  write(splits.features, to);
  write(splits.class_names, to);
  to.array(std::span<const char>(splits.target));
  write(splits.notes, to);
}

}  // namespace

std::size_t packed_bytes(const Splits& splits) {
  Writer counter;
  write(splits, counter);
  return counter.bytes();
}

void pack(const Splits& splits, std::span<std::byte> to) {
  require(to.size() >= packed_bytes(splits), ErrorKind::argument,
          "data: {} bytes for data sets that take {} when they are packed", to.size(),
          packed_bytes(splits));
  Writer writer(to);
  write(splits, writer);
}

Splits unpack(std::span<const std::byte> from, const std::shared_ptr<const void>& owner) {
  Reader reader(from);
  reader.demand(reader.number() == magic);
  Splits splits;
  splits.train = read(reader, owner);
  splits.test = read(reader, owner);
  const auto mean = reader.array<float>(), stddev = reader.array<float>();
  const auto origins = reader.array<double>();
  const auto target_mean = reader.array<float>(), target_stddev = reader.array<float>();
  splits.normalization = {{mean.begin(), mean.end()},
                          {stddev.begin(), stddev.end()},
                          {origins.begin(), origins.end()},
                          {target_mean.begin(), target_mean.end()},
                          {target_stddev.begin(), target_stddev.end()}};
  splits.features = read_texts(reader);
  splits.class_names = read_texts(reader);
  const auto target = reader.array<char>();
  splits.target = {target.begin(), target.end()};
  splits.notes = read_texts(reader);
  return splits;
}

}  // namespace fast::data
